"""Tests of the reader, which are left out where the packages of its extra are not installed."""

from importlib.util import find_spec

_NEEDED = ("starlette", "uvicorn", "jinja2", "nh3", "pygments", "math_core", "httpx", "mcp")

collect_ignore_glob = [] if all(map(find_spec, _NEEDED)) else ["test_*.py"]
