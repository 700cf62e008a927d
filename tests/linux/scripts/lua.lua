-- Lua, as Debian's package lua5.4 has it.
local function title(text) print("== " .. text) end

title("values")
print(7 // 2, -7 // 2, 7 % -3, 2 ^ 10, 10 / 2, 1 << 62, 0xff ~ 0x0f, 3 | 4, "10" + 5, 1e15, 2^53)
print(math.maxinteger + 1 == math.mininteger, math.type(1), math.type(1.0), 1 == 1.0, math.floor(-1.5), math.ult(1, -1),
    math.tointeger(3.0))
print(#"text", "a" .. 1, nil == false, not nil, tostring(nil), tonumber("0x1p4"), tonumber("z", 36), 0.1 + 0.2, 1 / 0,
    -1 / 0)

title("strings")
print(("%5d|%-5s|%05.1f|%x|%q|%s"):format(42, "ab", 3.14159, 255, 'quo"te\n', true))
print(("hello world"):gsub("o", "0"), ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
for word, number in ("a=1, b=22, c=333"):gmatch("(%w+)=(%d+)") do io.write(word, ":", number, " ") end print()
print(("x"):rep(3, "-"), ("abc"):reverse(), ("abc"):byte(1, -1), ("%bxy"):len(), ("f(a(b)c)d"):match("%b()"),
    ("abc"):sub(-2))
print(string.pack("<i4 >i2 z s1", 1, 2, "z", "s"):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
print(string.unpack("<d", string.pack("<d", 1.5)), utf8.char(233, 9786), utf8.len("é☺"),
    ("THE (quick) fox"):find("%((%a+)%)"))

title("tables")
local list = {} for i = 1, 20000 do list[i] = (i * 7919) % 20011 end
table.sort(list) print(list[1], list[10000], list[20000], #list)
table.sort(list, function(a, b) return a > b end)
print(list[1], table.concat({1, 2, 3}, "-"), select("#", table.unpack({1, nil, 3}, 1, 3)))
local t = {10, 20, 30} table.insert(t, 2, 15) print(table.remove(t, 1), table.concat(t, " "), next({}), rawlen(t))
table.move(t, 1, 3, 2) print(table.concat(t, " "))

title("functions")
local function counter() local n = 0 return function() n = n + 1 return n end end
local a, b = counter(), counter() a() a() print(a(), b())
local function sum(...) local s = 0 for _, v in ipairs {...} do s = s + v end return s, select("#", ...) end
print(sum(1, 2, 3))
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(20))
local function loop(n) if n == 0 then return "tail" end return loop(n - 1) end print(loop(100000))
goto skip do print("never") end ::skip:: for i = 10, 1, -4 do io.write(i, " ") end print()

title("metatables and coroutines")
local V = {} V.__index = V V.__add = function(x, y) return setmetatable({x[1] + y[1]}, V) end
V.__tostring = function(v) return "V" .. v[1] end V.__lt = function(x, y) return x[1] < y[1] end
V.__call = function(v, n) return v[1] * n end
local v = setmetatable({1}, V) + setmetatable({2}, V)
print(tostring(v), v < setmetatable({4}, V), v(5), getmetatable("").__index == string)
do local c <close> = setmetatable({}, {__close = function() print("closed") end}) print("inside") end
local co = coroutine.wrap(function(x) for i = 1, 3 do x = coroutine.yield(i * x) end return "over" end)
print(co(1), co(2), co(3), co(4))
local failed = coroutine.create(function() error({code = 7}) end) local ok, e = coroutine.resume(failed)
print(ok, e.code, coroutine.status(failed))
print(pcall(error, "message", 0)) print(select(2, pcall(function() local x = nil; return x.y end)))
print(xpcall(function() error("deep") end, function(m) return m:match("deep") end)) print(load("return 1 +"))
print(load("return ...", "chunk", "t")(9))

title("files and processes")
local f = assert(io.open("/tmp/lua.txt", "w")) for i = 1, 1000 do f:write("line ", i, "\n") end f:close()
local n = 0 for line in io.lines("/tmp/lua.txt") do n = n + #line end print(n)
f = io.open("/tmp/lua.txt", "r+")
print(f:seek("end"), f:seek("set", 5), f:read("n"), f:read("l"), f:read("L"), f:read(4)) f:close()
print(io.type(f), io.open("/none"))
print(os.rename("/tmp/lua.txt", "/tmp/lua2.txt"), os.remove("/tmp/lua2.txt"), os.remove("/tmp/lua2.txt"))
print(os.getenv("HOME"), os.getenv("NONE"), os.date("!%Y-%m-%d %H:%M:%S", 86400), os.time({year = 2024, month = 2,
    day = 30, hour = 12}) % 86400)
collectgarbage() local before = collectgarbage("count") do local big = {} for i = 1, 1e5 do big[i] = {i} end end
collectgarbage() print(collectgarbage("count") - before < 100) local weak = setmetatable({{}}, {__mode = "v"})
collectgarbage() print(#weak)
print(require("string") == string, package.loaded._G == _G, #arg, arg[0]) io.stdout:setvbuf("full")
io.write("buffered ") io.stderr:write("not\n") io.flush() print() os.exit(5, true)
