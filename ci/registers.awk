# registers.awk -- what ptxas says of kernels, in files <family>-<group>-<architecture>.log, as a table for
# docs/registers.md. It fails where a kernel spills registers and is not named here, with a reason.
BEGIN {
    # allowed["kernel_f32"] = bytes, with the reason in a comment
    # Bytes that a thread has to load before it uses the first of them: where few threads have a tensor to themselves it is
    # they that keep the memory busy.
    in_flight["batch_norm_f32"] = in_flight["batch_norm_relu_f32"] = 64
    in_flight["batch_norm_gradient_f32"] = 128
    in_flight["batch_norm_masked_gradient_f32"] = 192
    in_flight["batch_norm_bf16"] = in_flight["batch_norm_relu_bf16"] = 32
    in_flight["batch_norm_gradient_bf16"] = 64
    in_flight["batch_norm_masked_gradient_bf16"] = 96
    in_flight["layer_norm_gradient_f32"] = 32 # of dy and x, a row ahead of their use
}
/^loads: / && ($2 in in_flight) && $3 + 0 < in_flight[$2] {
    printf "FAIL %s loads %d bytes before it uses one on %s, of %d\n", $2, $3, architecture, in_flight[$2] >"/dev/stderr"
    bad = 1
}
FNR == 1 {
    n = split(FILENAME, path, "/")
    split(path[n], part, /[-.]/)
    family = part[1]
    architecture = part[3]
}
/Compiling entry function/ {
    split($0, quoted, "'")
    kernel = quoted[2]
    stack = spilled = shared = 0
}
/bytes stack frame/ {
    for (i = 1; i < NF; i++) {
        if ($(i + 2) == "stack") stack = $i
        if ($(i + 2) == "spill") spilled += $i
    }
}
/Used [0-9]+ registers/ {
    for (i = 1; i < NF; i++) {
        if ($i == "Used") registers = $(i + 1)
        if ($(i + 2) ~ /^smem/) shared = $i
    }
    at = family SUBSEP architecture
    families[family]
    count[at]++
    if (registers + 0 > most[at]) { most[at] = registers + 0; worst[at] = kernel }
    if (stack + 0 > deepest[at]) deepest[at] = stack + 0
    if (shared + 0 > largest[at]) largest[at] = shared + 0
    spills[at] += spilled
    if (spilled > allowed[kernel]) {
        printf "FAIL %s spills %d bytes of registers on %s\n", kernel, spilled, architecture >"/dev/stderr"
        bad = 1
    }
}
END {
    n = split("sm_90 sm_120", architectures, " ")
    print "# Registers of the kernels"
    print ""
    print "What the assembler of " nvrtc " says of the kernels as the library compiles them, in blocks of 256"
    print "threads; no GPU was needed. For each family: the kernel with the most registers a thread, then the most"
    print "bytes of stack a thread and of shared memory a block that a kernel of it has, where it has any; on sm_90"
    print "of every dtype, on sm_120 of float32, float16 and bfloat16. Spilled are " (total() + 0) " bytes."
    print ""
    print "`ci/kernels --table` writes this file, `ci/test --all` compares it, and every run of `ci/test` checks that"
    print "none of float32, float16 and bfloat16 spills on sm_90, but for the families of rows (`cl_kernels/*.def`), which `--all` checks."
    print ""
    printf "| family | kernels |"
    for (i = 1; i <= n; i++) printf " %s |", architectures[i]
    printf "\n|---|---|"
    for (i = 1; i <= n; i++) printf "---|"
    print ""
    k = 0
    for (family in families) names[++k] = family
    for (i = 2; i <= k; i++)
        for (j = i; j > 1 && names[j - 1] > names[j]; j--) {
            t = names[j]; names[j] = names[j - 1]; names[j - 1] = t
        }
    for (j = 1; j <= k; j++) {
        printf "| %s | %d |", names[j], count[names[j] SUBSEP "sm_90"]
        for (i = 1; i <= n; i++) {
            at = names[j] SUBSEP architectures[i]
            printf " %s", (at in most) ? most[at] " `" worst[at] "`" : "-"
            if (deepest[at]) printf ", stack %d", deepest[at]
            if (largest[at]) printf ", shared %d", largest[at]
            printf " |"
        }
        print ""
    }
    exit bad
}
function total(   at, sum) {
    for (at in spills) sum += spills[at]
    return sum
}
