"""Property tests depend neither on chance nor on how busy the machine is."""

import ast

from hypothesis import HealthCheck, settings
from support.places import CHECKOUT, LONG


def test_examples_have_no_time_limit() -> None:
    current = settings()
    assert current.deadline is None
    assert HealthCheck.too_slow in current.suppress_health_check


def test_examples_can_be_repeated() -> None:
    assert settings().derandomize is not LONG
    assert settings().print_blob


def test_only_the_profile_sets_limits() -> None:
    """A ``suppress_health_check`` of one test would replace the profile's."""
    for path in (CHECKOUT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "settings":
                keywords = {keyword.arg for keyword in node.keywords}
                assert not keywords & {"deadline", "suppress_health_check"}, path
