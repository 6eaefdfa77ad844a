# prototypes.awk -- "FUNCTION HEADER commented|bare" for each prototype of the public headers. A comment
# stands behind the prototype or ends on the line before it; the title of a section is none.
FNR == 1 { before = "" }
/^TERN_API / {
    text = ""
    own = before
    while (1) {
        text = text " " $0
        if (/;/ || (getline) <= 0) break
    }
    head = text
    sub(/;.*/, "", head)
    match(head, /tern_[a-z0-9_]+\(/)
    name = substr(head, RSTART, RLENGTH - 1)
    file = FILENAME
    sub(/.*include\/tern\//, "", file)
    print name, file, (own == "comment" || text ~ /;.*\/\*/) ? "commented" : "bare"
    before = ""
    next
}
{
    if ($0 ~ /^\/\* ---- .*-- \*\/$/) before = ""
    else before = ($0 ~ /\*\/$/ && $0 !~ /^TERN_API/) ? "comment" : ""
}
