# calls.awk -- from the public headers, C that calls each function with arguments of any kind: for each options struct a
# function that fills its fields, for each prototype a function that makes the arguments, and a table of those.
#   awk -f calls.awk HEADER... >calls.inc
# What a call makes is freed. A parameter is made by make_TYPE(s, NAME) where test_wrong_calls.c has it; of an enum by make_enum; NULL stands for the
# pointers of other types; a function of the program's does nothing and fails. A number that follows an array is its count.
function trim(text) { gsub(/[ \t]+/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); return text }
function word(type) { gsub(/\*/, "_p", type); gsub(/\[[0-9]*\]/, "_p", type); gsub(/ /, "_", type); gsub(/__+/, "_", type); return type }
function is_array(type) { return type ~ /\*const \*$/ || type ~ /^tern_tensor \*\*$/ || type ~ /^const (int64_t|double|tern_value|tern_shape|char|void) \*$/ && type !~ /char|void/ || type ~ /const char \*const \*$/ || type ~ /^tern_(parameter|profiler_row) \*$/ }
# An expression for the parameter of that type and name.
function made(type, name, before) {
    if ((type == "int" || type == "int64_t") && is_array(before)) return (type == "int" ? "(int)" : "") "make_count(s)"
    if (type in known) return "make_" word(type) "(s, \"" name "\")"
    if (type in callbacks) return "chance(s, 50) ? NULL : refuse_" type
    if (type ~ /\*(const)?$/ || type ~ /\(/ || type in function_types) return "NULL"
    if (type in structs) return ""
    return "(" type ")make_enum(s)"
}
BEGIN {
    n = split("tern_tensor *|const tern_tensor *|tern_tensor *const *|tern_tensor **|tern_tensor *[2]|tern_tensor *[3]|int|int64_t|" \
              "uint64_t|size_t|double|float|bool|const char *|tern_scalar|tern_shape|tern_optional_int|const int64_t *|const double *|" \
              "const char *const *|const void *|tern_module *|const tern_module *|tern_optimizer *|const tern_optimizer *|" \
              "tern_dtype|tern_elements|tern_values_indices *|tern_unique_result *|tern_rnn_result *|double *|size_t *|int64_t *", list, "|")
    for (i = 1; i <= n; i++) known[list[i]] = 1
}
{ sub(/\/\*.*\*\//, ""); if (/\/\*/) { sub(/\/\*.*/, ""); held = $0; while ((getline) > 0 && !/\*\//); sub(/.*\*\//, ""); $0 = held $0 } }
/^typedef .*\(\*tern_[a-z0-9_]+\)/ {
    while (!/;/ && (getline line) > 0) $0 = $0 " " line
    match($0, /\(\*tern_[a-z0-9_]+/); name = substr($0, RSTART + 2, RLENGTH - 2); function_types[name] = 1
    result = trim(substr($0, 9, RSTART - 9)); list_text = substr($0, RSTART + RLENGTH + 1); sub(/;.*/, "", list_text)
    callbacks[name] = "static " result " refuse_" name trim(list_text) "\n{\n    " (result == "void" ? "" : result == "tern_status" ? "return TERN_ERR_ARGUMENT;" : "return 0;") "\n}\n"
    next
}
/^typedef tern_[a-z_]+ \*?tern_[a-z0-9_]+\(/ { next }
/^typedef struct tern_[a-z0-9_]+ \{/ { in_struct = $3; structs[in_struct] = 1; order[++n_structs] = in_struct; next }
/^} tern_[a-z0-9_]+;/ { in_struct = ""; next }
in_struct != "" {
    field = field " " $0
    if ($0 !~ /;/) next
    text = trim(field); field = ""
    sub(/;.*/, "", text)
    if (text ~ /[()\[{]/ || text ~ /reserved|FILE/) next
    match(text, /^(const )?(struct )?[a-z0-9_]+ (\*(const )?)*/)
    type = trim(substr(text, 1, RLENGTH)); base = type; stars = ""
    if (match(base, / ?\*.*$/)) { stars = substr(base, RSTART); base = substr(base, 1, RSTART - 1) }
    rest = substr(text, length(type) + 1)
    k = split(trim(rest), fields, ",")
    for (i = 1; i <= k; i++) {
        name = trim(fields[i]); own = i == 1 ? type : base
        if (sub(/^\*/, "", name) && i > 1) own = base " *"
        if (i == 1) own = type
        gsub(/ /, "", name)
        in_fields[in_struct] = in_fields[in_struct] name "\t" own "\n"
    }
    next
}
/^TERN_API / {
    text = ""
    while (1) { line = $0; sub(/\/\*.*/, "", line); text = text " " line; if (/;/ || (getline) <= 0) break }
    sub(/;.*/, "", text); text = trim(text); sub(/^TERN_API /, "", text); sub(/ __attribute__.*/, "", text)
    if (match(text, /^void tern_[a-z0-9_]+_free\(/)) {
        name = substr(text, 6, RLENGTH - 6); text_of = substr(text, RLENGTH + 1); sub(/\*.*/, "*", text_of)
        frees[trim(text_of)] = name
    }
    if (text !~ /\.\.\./) prototypes[++n_prototypes] = text
}
END {
    print "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wunused-parameter\""
    for (name in callbacks) if (name !~ /_$/) print callbacks[name]
    print "#pragma GCC diagnostic pop"
    for (i = 1; i <= n_structs; i++) {
        name = order[i]
        if (name !~ /_options$/) continue
        known["const " name " *"] = 1
        print "static const " name " *make_const_" name "_p(source *s, const char *parameter)\n{"
        print "    (void)parameter;\n    if (chance(s, 40))\n        return none(s);"
        print "    " name " *o = scratch(s, sizeof *o);\n    told(s, \"{\");"
        k = split(in_fields[name], lines, "\n")
        for (j = 1; j < k; j++) {
            split(lines[j], parts, "\t")
            expression = made(parts[2], parts[1], "")
            if (expression == "" || expression == "NULL" || parts[1] ~ /path|folder|device/) continue
            print "    if (chance(s, 30))\n        told(s, \"." parts[1] " = \"), o->" parts[1] " = " expression ";"
        }
        print "    told(s, \"}, \");\n    return o;\n}\n"
    }
    for (i = 1; i <= n_prototypes; i++) {
        text = prototypes[i]
        match(text, /tern_[a-z0-9_]+\(/)
        name = substr(text, RSTART, RLENGTH - 1); result = trim(substr(text, 1, RSTART - 1))
        list_text = substr(text, RSTART + RLENGTH); sub(/\)$/, "", list_text)
        if (list_text ~ /\(/) { print "/* " name " takes a function without a name. */"; continue }
        if (list_text == "void") continue
        k = split(list_text, parameters, ",")
        body = ""; arguments = ""; before = ""; possible = 1
        for (j = 1; j <= k; j++) {
            text = trim(parameters[j])
            match(text, /[A-Za-z0-9_]+(\[[0-9]*\])?$/)
            parameter = substr(text, RSTART); type = trim(substr(text, 1, RSTART - 1))
            if (parameter ~ /\[/) { type = type substr(parameter, index(parameter, "[")); sub(/\[.*/, "", parameter) }
            expression = made(type, parameter, before)
            if (expression == "") possible = 0
            declared = type ~ /\[/ ? "tern_tensor **" : type
            body = body "    " declared (declared ~ /\*$/ ? "" : " ") "a" j " = " expression ";\n"
            arguments = arguments (j > 1 ? ", " : "") "a" j
            before = type
        }
        if (!possible) { print "/* " name " takes a struct. */"; continue }
        print "static void call_" name "(source *s)\n{\n" body "    begin(s);"
        if (result in frees) print "    " result "made = (" name ")(" arguments ");\n    end(s);\n    if (made)\n        " frees[result] "(made);\n}\n"
        else print "    (void)(" name ")(" arguments ");\n    end(s);\n}\n"
        table = table "    {\"" name "\", call_" name "},\n"
    }
    print "static const struct {\n    const char *name;\n    void (*call)(source *s);\n} calls[] = {\n" table "};"
}
