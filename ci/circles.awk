# circles.awk -- circles among files, for ci/style: awk -f ci/circles.awk [-v public=1] HEADERS SOURCES SOURCES
#
# HEADERS are the public ones, of which the names are read; SOURCES, given twice, are the files that may
# stand in a circle: first their definitions are read, then what they use. A file takes from another what that
# one alone defines at the margin, not static and not in a public header (an operation may use any other's
# public function: its gradient is made of them; public=1 counts these too). A header takes from those that it includes.
#
# Files without an arrow in or out are taken away until none is left but those of circles and between them.
function strip(line,    code) {
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    code = ""
    for (;;) {
        if (comment) {
            if (!match(line, /\*\//)) return code
            line = substr(line, RSTART + 2)
            comment = 0
        }
        if (!match(line, /\/\*/)) break
        code = code substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + 2)
        comment = 1
    }
    sub(/\/\/.*/, "", line)
    return code line
}
function arrow(a, b, name) {
    if (a == b) return
    if (!((a, b) in names)) { from[++n] = a; to[n] = b; names[a, b] = name }
    else if (index(" " names[a, b] " ", " " name " ") == 0) names[a, b] = names[a, b] " " name
}
FILENAME ~ /^include\// {
    line = $0
    while (match(line, /tern_[a-z0-9_]+/)) {
        face[substr(line, RSTART, RLENGTH)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
    next
}
FNR == 1 { pass = ++seen[FILENAME]; comment = 0; name = "" }
pass == 1 && /^#include "/ && FILENAME ~ /\.h$/ {
    split($0, part, "\"")
    arrow(FILENAME, "src/" part[2], "#include")
}
{ line = strip($0) }
pass == 1 && FILENAME ~ /\.h$/ { next }
pass == 1 {
    # A definition may take several lines: it is one when a brace follows, not a semicolon.
    if (line ~ /^[a-z]/ && line !~ /^(static|typedef|extern|enum|union)/ && match(line, /(tern|names)_[a-z0-9_]+ *[(=[]/)) {
        name = substr(line, RSTART, RLENGTH)
        gsub(/[^a-z0-9_]/, "", name)
        if (!public && name in face) name = ""
    }
    if (name != "" && line ~ /^{|[^{]*= *{|{ *$/) {
        twice = (name in defined) && defined[name] != FILENAME
        defined[name] = twice ? "" : FILENAME
        name = ""
    }
    if (line ~ /; *$/) name = ""
    next
}
{
    while (match(line, /(tern|names)_[a-z0-9_]+/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (word in defined && defined[word] != "" && FILENAME ~ /\.c$/) arrow(FILENAME, defined[word], word)
    }
}
END {
    if (all) for (i = 1; i <= n; i++) print from[i] " -> " to[i] ": " names[from[i], to[i]]
    do {
        removed = 0
        split("", out)
        split("", into)
        for (i = 1; i <= n; i++) if (!gone[i]) { out[from[i]]++; into[to[i]]++ }
        for (i = 1; i <= n; i++)
            if (!gone[i] && (!out[to[i]] || !into[from[i]])) { gone[i] = 1; removed = 1 }
    } while (removed)
    if (!all) for (i = 1; i <= n; i++) if (!gone[i]) print from[i] " -> " to[i] ": " names[from[i], to[i]]
}
