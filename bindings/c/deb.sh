#!/usr/bin/env bash
# Debian packages of the library, from a staged installation: libpaceline1 for programs that run, libpaceline-dev for those who compile.
#   deb.sh STAGE SONAME OUT     `make deb` calls it; DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools
# Needs dpkg-deb and objdump.
set -euo pipefail
stage=$(realpath "$1") soname=$2 out=$(realpath "$3")
root=$(realpath "$(dirname "$0")/../..")
runtime=libpaceline${soname##*.} development=libpaceline-dev
version=$(sed -n '0,/^version = "\(.*\)"/s//\1/p' "$root/Cargo.toml" | head -1 | tr - '~')
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-$(id -un)} <${DEBEMAIL:-$(id -un)@$(hostname)}>"
library=$(find "$stage" -name "$soname" -print -quit)

# The packages of the libraries that it is linked to; of the C library the oldest version that has all symbols.
dependencies() {
    local name libc
    libc=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
    for name in $(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }'); do
        case $name in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) echo "libc6 (>= ${libc#GLIBC_})" ;;
        libgcc_s.so.1) echo "libgcc-s1" ;;
        *) echo "no package is known for $name" >&2 && return 1 ;;
        esac
    done | sort -u | paste -sd , | sed 's/,/, /g'
}

# Writes a package of the files in a folder: its name, section, dependencies, short and long description.
package() {
    local folder=$1 name=$2 section=$3 depends=$4 short=$5 long=$6
    install -d "$folder/usr/share/doc/$name" "$folder/DEBIAN"
    {
        printf 'Paceline is licensed under MIT or Apache-2.0, at the choice of its users. The latter is in\n'
        printf '/usr/share/common-licenses/Apache-2.0, the former:\n\n'
        cat "$root/LICENSE-MIT"
    } >"$folder/usr/share/doc/$name/copyright"
    chmod -R u+rwX,go+rX,go-w "$folder"
    (cd "$folder" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    {
        printf 'Package: %s\nSource: paceline\nVersion: %s\nArchitecture: %s\nMulti-Arch: same\n' "$name" "$version" "$architecture"
        printf 'Maintainer: %s\nInstalled-Size: %s\nSection: %s\nPriority: optional\n' \
            "$maintainer" "$(du -sk --apparent-size "$folder/usr" | cut -f1)" "$section"
        printf 'Depends: %s\n' "$depends"
        [ "$section" != libs ] || printf 'Recommends: libpcap0.8\n'
        printf 'Description: %s\n %s\n' "$short" "$long"
    } >"$folder/DEBIAN/control"
    if [ "$section" = libs ]; then
        printf 'activate-noawait ldconfig\n' >"$folder/DEBIAN/triggers"
        printf '%s %s %s (>= %s)\n' libpaceline "${soname##*.}" "$name" "$version" >"$folder/DEBIAN/shlibs"
    fi
    dpkg-deb -Zgzip --root-owner-group --build "$folder" "$out/${name}_${version}_$architecture.deb" >/dev/null
    echo "$out/${name}_${version}_$architecture.deb"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=$(dirname "${library#"$stage"/}")
install -d "$work/runtime/$libraries"
cp -a "$stage" "$work/development"
mv "$work/development/$libraries"/libpaceline.so.* "$work/runtime/$libraries"
depends=$(dependencies)
what="runs XDP programs, TC classifiers and packet filters in user space"
package "$work/runtime" "$runtime" libs "$depends" "$what" \
    "libpaceline $what: the verifier, native code, maps and chains, without root or kernel. Expressions of tcpdump take libpcap."
package "$work/development" "$development" libdevel "$runtime (= $version)" "$what (for development)" \
    "Headers for C and C++, the static library and the file of pkg-config."
