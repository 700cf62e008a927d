# uv without a network: makes a project, builds a package of it, makes a virtual environment with Debian's Python,
# installs the package there and runs it, and resolves a project's requirements.
mkdir -p /tmp/work /tmp/home
cd /tmp/work || exit 1
export HOME=/tmp/home UV_OFFLINE=1 UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never UV_CACHE_DIR=/tmp/cache NO_COLOR=1
export UV_PYTHON=/usr/bin/python3.11 UV_LINK_MODE=copy

# Leaves out times and random names.
uv() {
    echo "uv $*:"
    /suite/uv "$@" > /tmp/said 2>&1 < /dev/null
    echo "status $?"
    sed -E 's/ in [0-9.]+(ms|s)//; s/\.tmp[A-Za-z0-9]+/TEMPORARY/g' /tmp/said
}
uv --version
uv python find
uv init --lib --vcs=none --author-from=none sample
cat sample/pyproject.toml sample/src/sample/__init__.py
uv build --wheel --sdist sample
ls sample/dist
uv venv environment
cat environment/pyvenv.cfg | grep -v '^uv'
ls environment environment/bin
uv pip install --python environment sample/dist/sample-0.1.0-py3-none-any.whl
uv pip list --python environment
uv pip show --python environment sample
environment/bin/python -c 'import sample, sys; print(sample.hello(), sys.prefix)'
uv pip check --python environment
mkdir other
cat > other/pyproject.toml <<'END'
[project]
name = "other"
version = "1.2.3"
requires-python = ">=3.11"
dependencies = ["sample"]
[tool.uv.sources]
sample = { path = "../sample" }
END
uv pip compile other/pyproject.toml
uv lock --project other
cat other/uv.lock
uv sync --project other
uv run --project other python -c 'import sample; print(sample.hello())'
uv tree --project other
uv add --project other missing
uv pip uninstall --python environment sample
uv pip list --python environment
uv cache clean
uv version --project other --bump minor
