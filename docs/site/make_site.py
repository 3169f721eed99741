#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_site.py FOLDER: README.md and docs/ as HTML pages that need no server. cmark-gfm converts; this adds the frame and checks
that every link leads somewhere."""
import html
import os
import re
import shutil
import subprocess
import sys

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = [
    ("Start", ["README.md", "docs/tutorial.md"]),
    ("How to", ["docs/howto/cmake.md", "docs/howto/autotools.md", "docs/howto/ci.md", "docs/howto/containers.md", "docs/howto/systemd.md",
                "docs/howto/always-on.md"]),
    ("Reference", []),  # what is in docs/ and in no other part
    ("How it works", ["docs/architecture.md", "docs/order.md", "docs/lab.md", "docs/slicing.md", "docs/rig.md", "docs/benchmarks.md",
                      "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]),
]
EXTERNAL = re.compile(r"[a-z]+:")


def sources():
    """[(part, [path])]"""
    listed = {p for _, paths in PARTS for p in paths}
    rest = sorted("docs/" + name for name in os.listdir(TREE + "/docs") if name.endswith(".md") and "docs/" + name not in listed)
    return [(part, paths or rest) for part, paths in PARTS]


def target(path):
    """Where the page of a source is: below the folder of the site."""
    if path == "README.md":
        return "index.html"
    return re.sub(r"^docs/", "", path)[:-3] + ".html"


def title(text):
    return re.search(r"^# (.*)$", text, re.M).group(1).replace("`", "")


def slug(heading):
    """The anchor of a heading, as code hosts make it."""
    text = html.unescape(re.sub(r"<[^>]*>", "", heading)).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def convert(text):
    done = subprocess.run(["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough"], input=text, text=True,
                          stdout=subprocess.PIPE, check=True)
    return re.sub(r"<(h[1-6])>(.*?)</\1>", lambda m: f'<{m[1]} id="{slug(m[2])}">{m[2]}</{m[1]}>', done.stdout)


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.parts = sources()
        self.texts = {}
        for _, paths in self.parts:
            for path in paths:
                with open(f"{TREE}/{path}", encoding="utf-8") as f:
                    self.texts[path] = f.read()
        self.bodies = {path: convert(text) for path, text in self.texts.items()}
        self.bad = []

    def link(self, path, href):
        """A link of a source, as its page has it. A file that is no page is copied."""
        if EXTERNAL.match(href):
            return href
        place, _, anchor = href.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), place)) if place else path
        if to in self.bodies:
            if anchor and f'id="{anchor}"' not in self.bodies[to]:
                self.bad.append(f"{path}: {href}: there is no such heading")
            new = target(to)
        elif os.path.isfile(f"{TREE}/{to}"):
            new = "files/" + to
            os.makedirs(os.path.dirname(f"{self.folder}/{new}"), exist_ok=True)
            shutil.copyfile(f"{TREE}/{to}", f"{self.folder}/{new}")
        else:
            self.bad.append(f"{path}: {href}: there is no such file")
            return href
        return os.path.relpath(new, os.path.dirname(target(path)) or ".") + ("#" + anchor if anchor else "")

    def menu(self, here):
        out = []
        for part, paths in self.parts:
            out.append(f"<h2>{html.escape(part)}</h2>\n<ul>")
            for path in paths:
                to = os.path.relpath(target(path), os.path.dirname(target(here)) or ".")
                mark = ' aria-current="page"' if path == here else ""
                out.append(f'<li><a href="{to}"{mark}>{html.escape(title(self.texts[path]))}</a></li>')
            out.append("</ul>")
        return "\n".join(out)

    def page(self, path, frame, style):
        body = re.sub(r'href="([^"]*)"', lambda m: f'href="{self.link(path, html.unescape(m[1]))}"', self.bodies[path])
        words = {"title": html.escape(title(self.texts[path])), "style": style, "menu": self.menu(path), "body": body}
        return re.sub(r"@(title|style|menu|body)@", lambda m: words[m[1]], frame)

    def write(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(here + "/frame.html", encoding="utf-8") as f, open(here + "/style.css", encoding="utf-8") as g:
            frame, style = f.read(), g.read()
        for path in self.bodies:
            page = f"{self.folder}/{target(path)}"
            os.makedirs(os.path.dirname(page), exist_ok=True)
            with open(page, "w", encoding="utf-8") as f:
                f.write(self.page(path, frame, style))


def main():
    site = Site(sys.argv[1])
    site.write()
    for line in site.bad:
        print(line, file=sys.stderr)
    sys.exit(bool(site.bad))


main()
