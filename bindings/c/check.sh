#!/usr/bin/env bash
# The C library as its users get it: installed, found by pkg-config, used from C, C++ and Go, and under Valgrind.
#   check.sh            needs gcc, g++, pkg-config, go, valgrind, binutils
# The header and the symbols are compared with the sources, the interface with the list that is committed.
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ../..)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
say() { printf -- '-- %s\n' "$*"; }
# The library is tested here, not measured.
soon() { make --silent CARGOFLAGS="--locked --config $PWD/check.toml" "$@"; }

say "header and symbols are those of the sources"
./header.sh --check

say "installed"
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
soon install PREFIX="$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib

say "the dynamic library exports the committed symbols and no others, under its soname"
nm -D --defined-only "$prefix/lib/libpaceline.so" | awk '$2 == "T" { print $3 }' | sort -u | diff -u symbols.txt -
abi=$(sed -n 's/^#define PACELINE_ABI_VERSION //p' include/paceline.h)
readelf -d "$prefix/lib/libpaceline.so" | grep "soname: \[libpaceline.so.$abi\]" >/dev/null

warnings=(-Wall -Wextra -Werror -g -O1)
flags=()
read -ra flags <<<"$(pkg-config --cflags --libs paceline)"
static=()
read -ra static <<<"$(pkg-config --cflags paceline) -Wl,-Bstatic -lpaceline -Wl,-Bdynamic -L$prefix/lib $(pkg-config --libs --static paceline | sed 's/-lpaceline//')"
gcc -std=c99 -pedantic-errors -fsyntax-only "${warnings[@]}" include/paceline.h
g++ -std=c++17 -pedantic-errors -fsyntax-only "${warnings[@]}" include/paceline.hpp
gcc -std=gnu11 "${warnings[@]}" -Wno-missing-field-initializers tests/*.c -o "$prefix/library" "${flags[@]}" -lpthread
gcc -std=gnu11 "${warnings[@]}" examples/unit_test.c -o "$prefix/unit_test" "${flags[@]}"
gcc -std=gnu11 "${warnings[@]}" examples/unit_test.c -o "$prefix/unit_test_static" "${static[@]}"
gcc -std=gnu11 "${warnings[@]}" examples/filter.c -o "$prefix/filter" "${flags[@]}"
g++ -std=c++17 "${warnings[@]}" examples/chain.cpp -o "$prefix/chain" "${flags[@]}"

say "the test in C"
"$prefix/library" "$root/examples"
if [ -n "${PACELINE_TESTKIT-}" ] && [ -n "${PACELINE_COMMAND-}" ]; then
    say "the same outcomes as those of the command"
    gcc -std=gnu11 "${warnings[@]}" -Wno-missing-field-initializers "$root/crates/testkit/src/doors/door.c" -o "$prefix/door" "${flags[@]}"
    "$PACELINE_TESTKIT" doors "$root/examples" --count 10 --packets 40 --c "$prefix/door"
fi
say "examples"
"$prefix/unit_test" "$root/examples/firewall.o"
"$prefix/unit_test_static" "$root/examples/firewall.o"
! ldd "$prefix/unit_test_static" | grep -q libpaceline
counts() { awk '$1 ~ /^(aborted|drop|pass|tx|redirect)$/ { print $1, $2 }'; }
"$prefix/filter" "$root/examples/firewall.o" "$root/examples/traffic.pcap" | counts | tee "$prefix/verdicts"
command=${PACELINE_COMMAND:-cargo run --release --locked --quiet --}
# Words of a command, if it is not a path.
(cd "$root" && $command run examples/firewall.o --in examples/traffic.pcap) | counts |
    diff "$prefix/verdicts" -
"$prefix/chain" "$root/examples"
if command -v go >/dev/null; then
    (cd examples/go && CGO_ENABLED=0 go vet . && CGO_ENABLED=0 go build -o "$prefix/go" .)
    "$prefix/go" "$root/examples/firewall.o" firewall
else
    echo "SKIP the example in Go: go is not installed"
    [ "${PACELINE_REQUIRE_ALL-}" != 1 ]
fi

say "Debian packages: complete, and an example is compiled and runs with what is in them"
debian=$prefix/debian
soon deb >"$prefix/packages"
while read -r package; do
    dpkg-deb --extract "$package" "$debian"
    dpkg-deb --control "$package" "$prefix/control"
    (cd "$debian" && md5sum --check --quiet "$prefix/control/md5sums")
done <"$prefix/packages"
# Every file of the installation is in one of them.
diff <(cd "$debian" && find . -name '*paceline*' ! -type d -printf '%f\n' | sort) \
    <(find "$prefix/include" "$prefix/lib" ! -type d -printf '%f\n' | sort)
dpkg-deb --field "$(grep -F libpaceline1_ "$prefix/packages")" Package Version Architecture Maintainer Depends
[ "$(dpkg-deb --field "$(grep -F libpaceline-dev_ "$prefix/packages")" Depends)" = \
    "libpaceline1 (= $(dpkg-deb --field "$(grep -F libpaceline1_ "$prefix/packages")" Version))" ]
libraries=$(dirname "$(find "$debian" -name libpaceline.so)")
packaged=()
read -ra packaged <<<"$(PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$debian PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
    PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --cflags --libs paceline)"
gcc -std=gnu11 "${warnings[@]}" examples/unit_test.c -o "$prefix/unit_test_debian" "${packaged[@]}"
LD_LIBRARY_PATH=$libraries ldd "$prefix/unit_test_debian" | grep "$libraries/libpaceline.so.$abi" >/dev/null
LD_LIBRARY_PATH=$libraries "$prefix/unit_test_debian" "$root/examples/firewall.o"

say "the test in C under Valgrind"
valgrind --quiet --smc-check=all --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    "$prefix/library" "$root/examples"
