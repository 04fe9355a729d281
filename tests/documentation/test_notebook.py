"""The notebook runs from top to bottom, and its outputs can be displayed."""

from pathlib import Path

import pytest
from support.command import run_python
from support.places import CHECKOUT

NOTEBOOK = CHECKOUT / "docs" / "tutorials" / "questions.ipynb"

# Do what a notebook does: run a cell, and show the value of its last line.
RUN = """
import ast, json, os, sys
os.environ["MPLBACKEND"] = "Agg"
names = {"__name__": "__main__"}
for cell in json.load(sys.stdin)["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            shown = getattr(value, "_repr_html_", value.__repr__)()
            print(f"[{cell['id']}]", shown)
print("questions in the frame:", len(names["questions"]), "plotted:", len(names["waited"]))
print("dates are", names["answers"]["CreationDate"].dtype, "in", len(names["figure"].axes), "plots")
names["figure"].savefig(sys.argv[1])
"""


@pytest.mark.long
def test_runs_from_top_to_bottom(tmp_path: Path) -> None:
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package, reason=f"the notebook needs {package}: the extra examples")
    plot = tmp_path / "plot.png"
    result = run_python(
        "-c", RUN, plot, cwd=NOTEBOOK.parent, input=NOTEBOOK.read_text(encoding="utf-8")
    )
    assert result.stderr == ""
    assert "Why does my sourdough rise overnight" in result.stdout
    assert "answer 5  accepted" in result.stdout
    assert "(8, True, False)" in result.stdout
    assert "4 accepted answers\n  1 question without answers\n" in result.stdout
    assert "questions in the frame: 8 plotted: 7" in result.stdout
    assert "dates are datetime64[ms, UTC] in 3 plots" in result.stdout
    assert plot.stat().st_size > 5000
