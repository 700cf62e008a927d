# esbuild: bundles and minifies a small program of several modules, in several formats, and reports mistakes in one.
mkdir -p /tmp/work/lib
cd /tmp/work || exit 1
cat > main.js <<'END'
import { sum, describe, unused } from './lib/numbers.js'
import data from './data.json'
import styles from './style.css'

const values = data.values ?? []
export async function main(...more) {
    const total = sum([...values, ...more])
    for await (const word of words(total)) console.log(word)
    return { total, text: describe`total is ${total}` }
}
async function* words(count) {
    for (let index = 0; index < count; index++) yield `${index ** 2}`
}
class Counter { #count = 0; static from = (n) => { const c = new Counter(); c.#count = n; return c }; get count() { return this.#count } }
console.log(Counter.from(3)?.count, styles)
main(4, 5).then(({ text }) => console.log(text))
END
cat > lib/numbers.js <<'END'
/** Adds numbers. */
export const sum = (numbers) => numbers.reduce((total, one) => total + one, 0)
export function describe(strings, ...values) {
    return strings.map((string, index) => string + (values[index] ?? '')).join('')
}
export function unused() { return 'this is not in the bundle' }
END
cat > typed.ts <<'END'
enum Colour { Red, Green = 5, Blue }
interface Point { x: number; y?: number }
namespace Shapes { export const origin: Point = { x: 0 } }
export const nearest = <T extends Point>(points: readonly T[]): T | undefined =>
    points.sort((a, b) => a.x - b.x)[0] as T
export default (colour: Colour = Colour.Blue): string => Colour[colour]! + Shapes.origin.x
END
cat > view.jsx <<'END'
export const View = ({ items }) => <ul className="list">{items.map((item) => <li key={item}>{item}</li>)}<></></ul>
END
cat > style.css <<'END'
@media (min-width: 10px) { .list { color: #ff0000; margin: 0px 0px 0px 0px; & li { display: block } } }
END
echo '{ "values": [1, 2, 3], "other": "left out" }' > data.json
printf 'const a = 1\nconst a = 2\nlet = = 3\nimport "./missing.js"\n' > wrong.js

# The output goes through a file, since esbuild uses colours on a terminal.
esbuild() {
    echo "esbuild $*:"
    /suite/esbuild --log-limit=0 "$@" > /tmp/said 2>&1
    status=$?
    cat /tmp/said
    echo "status $status"
}
esbuild --version
esbuild main.js --bundle --format=esm --outdir=out --log-level=error
cat out/main.js out/main.css
esbuild main.js --bundle --minify --sourcemap --outdir=small --log-level=error
cat small/main.js small/main.css
cksum < small/main.js.map
esbuild main.js --bundle --format=cjs --target=es2015 --outdir=old --log-level=error
cat old/main.js
esbuild typed.ts view.jsx --minify-whitespace --outdir=several --log-level=error
cat several/typed.js several/view.js
esbuild wrong.js --bundle --outfile=none.js
esbuild none.js --bundle
esbuild --minify --loader=ts < typed.ts
esbuild --analyze main.js --bundle --outdir=analysed --log-level=error
# Many modules, which several threads read at the same time.
mkdir many
index=0
while [ $index -lt 200 ]; do
    index=$((index + 1))
    echo "export const value$index = () => 'module number $index'; export let other$index = $index" > many/$index.js
    echo "import { value$index } from './$index.js'; console.log(value$index())" >> many/all.js
done
esbuild many/all.js --bundle --minify --outfile=many.js --log-level=error
cksum < many.js
wc -c < many.js
