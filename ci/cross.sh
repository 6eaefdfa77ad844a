#!/bin/bash
# cross.sh -- compilers for other systems, and the libraries that tern is linked with, built for them:
# what ci/platforms and ci/binaries share. It is read by them, in the root of the tree; $work is their
# folder. Compilers, wine, qemu and the sources of libraries come from Debian, zig from PyPI, and are
# unpacked into $work: nothing is installed.
# shellcheck shell=bash
root=${work:?}/root

skip() {
    echo "SKIP: $*"
    exit 77
}
failed() {
    echo "FAIL $*" >&2
    exit 1
}

# fetched PACKAGES: puts these into $root; unpacked PACKAGES: and what they need that is not installed.
unpacked() {
    local needed
    needed=$(apt-get -s install --no-install-recommends "$@" 2>/dev/null | awk '/^Inst/ { print $2 }')
    # shellcheck disable=SC2086
    [ -n "$needed" ] && fetched $needed
}
fetched() {
    local package
    mkdir -p "$work/packages" "$root"
    (cd "$work/packages" && apt-get download "$@" >download.log 2>&1) || return 1
    for package in "$work"/packages/*.deb; do dpkg -x "$package" "$root" || return 1; done
    rm -f "$work"/packages/*.deb
}

mingw() { # C's compiler, and C++'s where it is asked for
    PATH=$PATH:$root/usr/bin
    command -v x86_64-w64-mingw32-gcc-posix >/dev/null || unpacked gcc-mingw-w64-x86-64-posix ||
        skip "there is no mingw-w64 gcc, and Debian's gcc-mingw-w64-x86-64-posix can't be had"
}

# The sources of the libraries that tern and its tests are linked with, as Debian has them.
sources() {
    [ ! -f "$work/src/.whole" ] || return 0
    local release apt
    # shellcheck disable=SC1091
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mkdir -p "$work/src/lists/partial"
    echo "deb-src http://deb.debian.org/debian $release main" >"$work/src/sources.list"
    apt=(-o "Dir::Etc::SourceList=$work/src/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/src/lists"
        -o APT::Sandbox::User=root)
    (cd "$work/src" && apt-get "${apt[@]}" update && apt-get "${apt[@]}" source jansson pcre2 utf8proc cmocka) >"$work/src/log" 2>&1 ||
        return 1
    touch "$work/src/.whole"
}

libraries=(jansson pcre2 utf8proc cmocka)
# dependencies NAME CMAKE-ARGUMENTS...: builds them into $work/NAME, and puts there the headers of what tern opens at run time.
dependencies() {
    local prefix=$work/$1 folder name
    shift
    sources || skip "the sources of jansson, PCRE2, utf8proc and cmocka can't be had from Debian"
    for name in "${libraries[@]}"; do
        [ ! -f "$prefix/.$name" ] || continue
        folder=$(find "$work/src" -maxdepth 1 -type d -name "$name-*")
        mkdir -p "$prefix/build"
        { cmake -S "$folder" -B "$prefix/build/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
            -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON \
            -DJANSSON_EXAMPLES=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF "$@" &&
            ninja -C "$prefix/build/$name" install; } >"$prefix/build/$name.log" 2>&1 ||
            { tail -n 20 "$prefix/build/$name.log"; failed "$name does not build for $(basename "$prefix")"; }
        touch "$prefix/.$name"
    done
    mkdir -p "$prefix/include"
    for name in CL oneapi zlib.h zconf.h zip.h zipconf.h; do
        folder=$(for i in /usr/include /usr/include/x86_64-linux-gnu "$root/usr/include"; do [ ! -e "$i/$name" ] || echo "$i"; done | head -n 1)
        [ -z "$folder" ] || cp -r "$folder/$name" "$prefix/include"
    done
}

# replaced NAME: $work/bin/NAME.new takes the place of NAME; a program that stays the same keeps its date.
replaced() {
    chmod +x "$work/bin/$1.new"
    if cmp -s "$work/bin/$1.new" "$work/bin/$1"; then rm "$work/bin/$1.new"; else mv "$work/bin/$1.new" "$work/bin/$1"; fi
}

# compiler NAME COMMAND...: $work/bin/NAME, which compiles for a test and not for speed.
for_a_test="-O1 -Wno-maybe-uninitialized -Wno-format-truncation -Wno-unknown-warning-option"
compiler() {
    mkdir -p "$work/bin"
    printf '#!/bin/sh\nexec %s "$@" %s\n' "${*:2}" "$for_a_test" >"$work/bin/$1.new"
    replaced "$1"
}

# zig TARGET NAME OPTIONS...: a C compiler $work/bin/NAME for TARGET, by PyPI's ziglang; the options come after a caller's.
# Its linker makes no bundles: a library that is opened at run time is a shared one. It knows levels of x86-64 by another name.
zig() {
    local zig
    [ -x "$work/zig/bin/python" ] || python3 -m venv "$work/zig" || skip "python3 makes no venv"
    zig=$(echo "$work"/zig/lib/python3*/site-packages/ziglang/zig)
    [ -x "$zig" ] || "$work/zig/bin/python" -m pip -q install ziglang || skip "PyPI has no ziglang for this machine"
    zig=$(echo "$work"/zig/lib/python3*/site-packages/ziglang/zig)
    export ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
    mkdir -p "$work/bin"
    cat >"$work/bin/$2.new" <<END
#!/bin/sh
for a do
    shift
    case \$a in
    -bundle) a=-dynamiclib ;;
    -march=x86-64-v?) a=-march=x86_64_v\${a##*v} ;;
    esac
    set -- "\$@" "\$a"
done
exec $zig cc -target $1 -fno-sanitize=undefined "\$@" ${*:3}
END
    replaced "$2"
    printf '#!/bin/sh\nexec %s ar "$@"\n' "$zig" >"$work/bin/zig-ar.new"
    printf '#!/bin/sh\nexec %s ranlib "$@"\n' "$zig" >"$work/bin/zig-ranlib.new"
    replaced zig-ar
    replaced zig-ranlib
}

# The first program of README.md, and what it prints.
readme() {
    awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$1/readme.c"
    awk '/^```output$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$1/readme.expected"
}

# wine: $work/bin/wine, which is TERN_RUN where it lies; programs find DLLs by WINEPATH.
wine() {
    [ -f "$root/usr/lib/wine/wine64" ] || unpacked wine64 || fetched wine64 libwine || skip "Debian's wine64 can't be had"
    ln -sf wineserver64 "$root/usr/lib/wine/wineserver" # Debian's is a script that looks for it in /usr
    mkdir -p "$work/bin"
    gcc -O1 -shared -fPIC tests/elsewhere/wine/quit.c -o "$work/quit.so"
    cat >"$work/bin/wine.new" <<END
#!/bin/sh
export LC_ALL=C.UTF-8 WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml= LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu
export WINESYSTEMDLLPATH=$root/usr/x86_64-w64-mingw32/lib # of zlib1.dll, without which wine has no user32.dll
export WINEPATH="\${WINEPATH:-Z:$work/windows/bin;Z:$work/tern-windows}"
export LD_PRELOAD=$work/quit.so
exec $root/usr/lib/wine/wine64 "\$@"
END
    replaced wine
}
# wine_starts COMPILER: wine's services live as long as a program does, and keep what the first one writes to: it is this one,
# which COMPILER compiles.
wine_starts() {
    local made=$work/wine/drive_c/windows/system32/ole32.dll
    [ -f "$made" ] || "$work/bin/wine" wineboot -i >"$work/wine.log" 2>&1 || true # it has no programs of 32 bits
    [ -f "$made" ] || { cat "$work/wine.log"; failed "wine's folder is not made"; }
    echo 'int main(void) { for (;;) Sleep(INFINITE); }' >"$work/stay.c"
    "$1" -include windows.h "$work/stay.c" -o "$work/stay.exe"
    "$work/bin/wine" "$work/stay.exe" >/dev/null 2>&1 </dev/null &
    # shellcheck disable=SC2064
    trap "kill $!" EXIT
}
