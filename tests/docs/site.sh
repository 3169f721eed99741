#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The site of ./run docs: every link leads to a page, a heading or a file, and no page loads anything from elsewhere.
. "$(dirname "$0")/../e2e/lib.sh"
command -v cmark-gfm >/dev/null || skip "cmark-gfm is not installed"
expect 0 python3 "$ETCH_SOURCE/docs/site/make_site.py" "$work/site"
pages=$(find "$work/site" -name '*.html' -not -path '*/files/*')
[ "$(echo "$pages" | wc -l)" -ge 20 ] || fail "pages are missing"
for page in $pages; do
  has "$page" 'aria-current="page"'
  has "$page" '<h1 id='
  ! grep -nE '<(script|link|img|iframe)\b|@(import|title|menu|body)\b|url\(' "$page" || fail "$page loads something, or has a gap"
  for href in $(grep -o 'href="[^"#:]*["#]' "$page" | sed 's/href="//; s/["#]$//' | sort -u); do
    [ -z "$href" ] || [ -e "$(dirname "$page")/$href" ] || fail "$page: $href leads nowhere"
    checks=$((checks + 1))
  done
done
# It fails where a link leads nowhere.
cp -r "$ETCH_SOURCE/docs" "$ETCH_SOURCE"/*.md "$ETCH_SOURCE/LICENSE" "$work"
echo '[gone](gone.md) [here](#no-such-heading)' >>"$work/docs/tutorial.md"
expect 1 python3 "$work/docs/site/make_site.py" "$work/other"
has "$work/err" "docs/tutorial.md: gone.md: there is no such file"
has "$work/err" "docs/tutorial.md: #no-such-heading: there is no such heading"
done_checking
