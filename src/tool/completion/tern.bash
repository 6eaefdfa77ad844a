# Completion of `tern` for bash: the program itself says which words can follow.
_tern()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
    # bash splits words at a colon: "opencl:0" is three of them.
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n : cur
        word=$cur
    fi
    mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --complete "${before[@]}" 2>/dev/null)" -- "$word")
    if declare -F __ltrim_colon_completions >/dev/null; then
        __ltrim_colon_completions "$word"
    fi
}
complete -o default -F _tern tern
