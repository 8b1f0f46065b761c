"""A hook of MkDocs: what the pages link to outside docs/ becomes a part of the site.

Pages link to the README files of benchmarks, to cards and to experiments as they lie in the repository,
so that the links work on a code host. The site gets these files under repository/, and the links lead there.
Pages and files that these link to follow.
"""

import posixpath
import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
DOCS, COPIES = "docs/", "repository/"
# a link's target, without its anchor; links in code are indented or in backticks, and none has this form
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_files(files, config):
    """Add the linked files."""
    waiting = [(DOCS + page.src_uri) for page in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _targets(page, (ROOT / page).read_text(encoding="utf-8")):
            if target in seen or target.startswith(DOCS) or not (ROOT / target).is_file():
                continue
            seen.add(target)
            files.append(File.generated(config, COPIES + target, abs_src_path=str(ROOT / target)))
            waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown, page, config, files):
    """Let the links of a page lead to the places of the site."""
    here = page.file.src_uri
    source = here.removeprefix(COPIES) if here.startswith(COPIES) else DOCS + here

    def moved(link):
        target = _resolved(source, link[1])
        place = target.removeprefix(DOCS) if target.startswith(DOCS) else COPIES + target
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    return LINK.sub(moved, markdown)


def _targets(page, text):
    return [_resolved(page, link) for link in LINK.findall(text)]


def _resolved(page, link):
    """A link's target as a path of the repository."""
    return posixpath.normpath(str(PurePosixPath(page).parent / link))
