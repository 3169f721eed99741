# SPDX-License-Identifier: MIT
# Sourced by tables that measure real programs: Debian's source packages, through apt with a configuration of its own,
# so that the system's lists are not touched. $sources is where they are; ETCH_BENCH_SOURCES keeps them for the next time.
sources=${ETCH_BENCH_SOURCES:-$(mktemp -d)}

# fetch PACKAGE: its unpacked source is in $sources/PACKAGE-*
fetch() {
  [ -n "$(find "$sources" -maxdepth 1 -type d -name "$1-*" -print -quit)" ] && return 0
  mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial"
  [ -s "$sources/apt/sources.list" ] || {
    sed -n 's/^URIs: *//p;s/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
      grep -m1 '/debian/\?$' | sed 's|.*|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] & bookworm main|' >"$sources/apt/sources.list"
    apt_own update -qq
  }
  (cd "$sources" && apt_own source -qq "$1")
}

apt_own() {
  apt-get -o Dir::Etc::SourceList="$sources/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$sources/apt/lists" -o Dir::Cache="$sources/apt/cache" -o APT::Sandbox::User=root "$@" >>"$sources/log" 2>&1
}

forget_sources() {
  [ -n "${ETCH_BENCH_SOURCES:-}" ] || rm -rf "$sources"
}
