"""Only the loop begins an agent."""

from pathlib import Path

import hunch


def test_no_constructor_begins():
    sources = Path(hunch.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "self.begin(World()" in path.read_text()]
