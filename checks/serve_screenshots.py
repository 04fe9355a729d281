"""Make the screenshots in serve.md from the sample site of the tests.

python checks/serve_screenshots.py
"""

import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests"))

from support.browser import browser  # noqa: E402
from support.serve_site import make, served  # noqa: E402

DESKTOP, PHONE = (1120, 760), (390, 760)
PICTURES = {
    "front": ("/", DESKTOP, "light"),
    "question": ("/questions/9", DESKTOP, "light"),
    "formulas": ("/questions/901", DESKTOP, "light"),
    "revisions": ("/posts/1/revisions", (1120, 1100), "light"),
    "dark": ("/questions/3", DESKTOP, "dark"),
    "search": ("/search?q=file*", DESKTOP, "light"),
    "user": ("/users/11", DESKTOP, "light"),
    "phone": ("/questions/1", PHONE, "light"),
    "phone-dark": ("/questions", PHONE, "dark"),
}


def main() -> None:
    """Write every picture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(make(Path(folder))) as address,
        browser() as launched,
    ):
        for name, (path, (width, height), scheme) in PICTURES.items():
            context = launched.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page = context.new_page()
            page.goto(f"{address}{path}")
            page.screenshot(path=CHECKOUT / "docs" / "images" / f"serve-{name}.png")
            context.close()


if __name__ == "__main__":
    main()
