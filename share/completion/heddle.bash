# Completes the heddle command in bash. It needs nothing but bash. The arguments of a program that
# heddle runs are left to that program's own completion, if there is one.

# Offers the words of $1 that begin with the word being completed.
_heddle_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Offers files and folders. Names can contain blanks.
_heddle_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# Offers values of an option. False if the option takes none.
_heddle_value() {
    local option=$1 cur=$2
    case $option in
    --gpu) _heddle_words "auto gpu cpu null" "$cur" ;;
    --cudart) _heddle_words "auto own nvidia" "$cur" ;;
    --trace-full) _heddle_words "block drop" "$cur" ;;
    --layers) _heddle_words "trace fault quota record sched sticky" "$cur" ;;
    --sched)
        compopt -o nospace 2>/dev/null
        _heddle_words "on prio= share= policy= group= scope= deadline_us= hold_us= cap_us= slice_us=
            batch= batch_wait_us= mode= stream= queue=" "$cur"
        ;;
    # bash makes the = of a setting a word of its own.
    prio) _heddle_words "high normal low" "$cur" ;;
    policy) _heddle_words "$(heddle sched policies 2>/dev/null | sed 's/ .*//')" "$cur" ;;
    mode) _heddle_words "gate record" "$cur" ;;
    stream) _heddle_words "client own" "$cur" ;;
    --log) _heddle_words "off error warn info debug" "$cur" ;;
    --trace | --driver | --config) _heddle_files "$cur" ;;
    --set)
        compopt -o nospace 2>/dev/null
        _heddle_words "$(heddle help settings 2>/dev/null |
            sed -n 's/^  \([a-z_][a-z_]*\) .*/\1=/p')" "$cur"
        ;;
    --resume) _heddle_files "$cur" ;;
    --ckpt)
        compopt -o nospace 2>/dev/null
        _heddle_words "on every= keep= dir= zstd= recover recover= wait=" "$cur"
        ;;
    --trace-data | --fault | --mem) COMPREPLY=() ;;
    *) return 1 ;;
    esac
}

_heddle_run_options="--gpu --trace --trace-data --trace-full --fault --mem --sched --cudart --layers --driver
    --log --config --set --ckpt --resume --sticky-launch --fail-on-refusal --lift --print-env --no-preload --inject --help"

# The index of the program's name among the words of `heddle run`, or nothing while there is none.
_heddle_program_at() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            echo $((i + 1))
            return
            ;;
        # bash makes words of its own of the = in --gpu=null.
        --gpu | --trace | --trace-data | --trace-full | --fault | --mem | --sched | --cudart | \
            --layers | --driver | --log | --config | --set | --ckpt | --resume)
            ((i++))
            [[ ${COMP_WORDS[i]} == = ]] && ((i++))
            # --set key=value is three words.
            [[ ${COMP_WORDS[i + 1]} == = && $((i + 1)) -lt $COMP_CWORD ]] && ((i += 2))
            ;;
        -*) ;;
        *)
            echo "$i"
            return
            ;;
        esac
    done
}

_heddle_run() {
    local cur=$1 prev=$2 at
    at=$(_heddle_program_at)
    if [[ -n $at && $at -lt $COMP_CWORD ]]; then
        _heddle_files "$cur"
    elif [[ -n $at ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -d -- "$cur")
    elif _heddle_value "$prev" "$cur"; then
        :
    elif [[ $cur == -* ]]; then
        _heddle_words "$_heddle_run_options" "$cur"
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
    fi
}

_heddle() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local commands="run serve sched trace fatbin cpu snap migrate vm cert devices doctor version help"
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = && $COMP_CWORD -gt 2 ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        _heddle_words "$commands --help --version" "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    run) _heddle_run "$cur" "$prev" ;;
    devices) _heddle_value "$prev" "$cur" || _heddle_words "--gpu --json --help" "$cur" ;;
    doctor) _heddle_words "--json --help" "$cur" ;;
    version) _heddle_words "--help" "$cur" ;;
    help) _heddle_words "$commands settings" "$cur" ;;
    serve) _heddle_serve "$cur" "$prev" ;;
    sched) _heddle_sched "$cur" "$prev" ;;
    trace) _heddle_trace "$cur" "$prev" ;;
    fatbin) _heddle_fatbin "$cur" "$prev" ;;
    cpu) _heddle_cpu "$cur" "$prev" ;;
    snap) _heddle_snap "$cur" "$prev" ;;
    migrate) _heddle_words "--to --deadline --budget --listen --verbose --help" "$cur" ;;
    vm) _heddle_vm "$cur" "$prev" ;;
    cert) _heddle_cert "$cur" "$prev" ;;
    esac
}

_heddle_sched_options="--gpu --pid --scope --json --help"

_heddle_sched() {
    local cur=$1 prev=$2
    if ((COMP_CWORD == 2)); then
        _heddle_words "list set pause resume release policies --help" "$cur"
        return
    fi
    case $prev in
    --gpu | --pid | --scope) COMPREPLY=() ;;
    *)
        if [[ $cur == -* ]]; then
            _heddle_words "$_heddle_sched_options" "$cur"
        else
            _heddle_sched_setting "$cur" "$prev"
        fi
        ;;
    esac
}

# What can be changed while programs run, or the value of one of them.
_heddle_sched_setting() {
    local cur=$1 prev=$2
    case $prev in
    set)
        compopt -o nospace 2>/dev/null
        _heddle_words "policy= prio= share= deadline_us= cap_us= hold_us= slice_us= batch=
            batch_wait_us=" "$cur"
        ;;
    prio | policy) _heddle_value "$prev" "$cur" ;;
    *) _heddle_words "$_heddle_sched_options" "$cur" ;;
    esac
}

_heddle_cert() {
    local cur=$1 prev=$2 options="--days --force --help"
    if ((COMP_CWORD == 2)); then
        _heddle_words "ca server client show --help" "$cur"
        return
    fi
    case $prev in
    --name | --host | --days) COMPREPLY=() ;;
    *)
        case ${COMP_WORDS[2]} in
        ca | client) options+=" --name" ;;
        server) options+=" --host" ;;
        show) options="--help" ;;
        esac
        if [[ $cur == -* ]]; then
            _heddle_words "$options" "$cur"
        else
            _heddle_files "$cur"
        fi
        ;;
    esac
}

_heddle_serve() {
    local cur=$1 prev=$2
    case $prev in
    --listen)
        compopt -o nospace 2>/dev/null
        _heddle_words "shm: unix: tcp:// vm:" "$cur"
        ;;
    --images)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        ;;
    --sandbox) _heddle_words "auto require off" "$cur" ;;
    --confine) _heddle_words "yes no" "$cur" ;;
    --show-clients) _heddle_words "own all" "$cur" ;;
    --tls-ca | --tls-cert | --tls-key | --tls-deny | --token-file | --config) _heddle_files "$cur" ;;
    --allow-uid) mapfile -t COMPREPLY < <(compgen -u -W all -- "$cur") ;;
    --allow-gid) mapfile -t COMPREPLY < <(compgen -g -- "$cur") ;;
    --mode | --memory | --host-memory | --total-memory | --worker-memory | --worker-cpus | --worker-uids | --clients | --channels | \
        --spare | --rate | --per-source | --startups | --idle | --session | --kernel-time | --compile-time | --patience | --grace | \
        --guest-timeout | --park-timeout | --parked | --parked-per-source | \
        --images-client | --images-total | --images-reserve | \
        --evict) COMPREPLY=() ;;
    *)
        _heddle_value "$prev" "$cur" || _heddle_words "--listen --gpu --mode --allow-uid
            --allow-gid --memory --host-memory --total-memory --clients --channels --spare --rate --per-source
            --startups --idle --session
            --kernel-time --compile-time --patience --grace --guest-timeout --park-timeout --parked --parked-per-source --tls-ca --tls-cert --tls-key --tls-deny --token-file --insecure --show-clients --images --images-client --images-total --images-reserve --sandbox
            --confine --worker-uids --worker-memory --worker-cpus --config --log --list --status --json --evict --drain --to --help" "$cur"
        ;;
    esac
}

_heddle_trace() {
    local cur=$1 prev=$2 options="--help"
    if ((COMP_CWORD == 2)); then
        _heddle_words "show summary export --help" "$cur"
        return
    fi
    case $prev in
    --sort) _heddle_words "total count mean p99 errors name" "$cur" ;;
    --by) _heddle_words "thread" "$cur" ;;
    --call | --thread | --from | --to | --limit) COMPREPLY=() ;;
    *)
        case ${COMP_WORDS[2]} in
        show)
            options+=" --call --errors --activity --thread --from --to --limit --no-args --file-order"
            options+=" --json"
            ;;
        summary) options+=" --sort --by --json" ;;
        export) options+=" --chrome --output" ;;
        esac
        if [[ $cur == -* ]]; then
            _heddle_words "$options" "$cur"
        else
            _heddle_files "$cur"
        fi
        ;;
    esac
}

_heddle_fatbin() {
    local cur=$1 prev=$2 options="--sections --json --help"
    if ((COMP_CWORD == 2)); then
        _heddle_words "list extract info disasm lift --help" "$cur"
        return
    fi
    case $prev in
    --kind) _heddle_words "ptx cubin lto" "$cur" ;;
    --arch) _heddle_words "sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120" "$cur" ;;
    --entry) COMPREPLY=() ;;
    *)
        case ${COMP_WORDS[2]} in
        list) options+=" --kind --arch --entry --kernels" ;;
        disasm) options="--sections --help --kernel --arch --entry" ;;
        lift) options="--sections --help --kernel --arch --entry --count --module" ;;
        extract) options+=" --kind --arch --entry --output" ;;
        info) options+=" --kernels" ;;
        esac
        if [[ $cur == -* ]]; then
            _heddle_words "$options" "$cur"
        else
            _heddle_files "$cur"
        fi
        ;;
    esac
}

_heddle_cpu() {
    local cur=$1 prev=$2
    if ((COMP_CWORD == 2)); then
        _heddle_words "explain --help" "$cur"
    elif [[ $prev == --block ]]; then
        COMPREPLY=()
    elif [[ $cur == -* ]]; then
        _heddle_words "--block --lines --passes --compile --no-compile --json --help" "$cur"
    else
        _heddle_files "$cur"
    fi
}

_heddle_snap() {
    local cur=$1 prev=$2 options="--help"
    if ((COMP_CWORD == 2)); then
        _heddle_words "save restore fork out in pause resume list info verify prune compact --help" \
            "$cur"
        return
    fi
    case ${COMP_WORDS[2]} in
    save) options+=" --output --dir --leave-running --zstd --label --deadline --listen" ;;
    restore) options+=" --gpu --new-pids --detach --verify --trust-user" ;;
    fork) options+=" --copies --gpu --verify --trust-user" ;;
    out) options+=" --deadline --listen --verbose" ;;
    pause) options+=" --deadline --listen" ;;
    in) options+=" --gpu --verify --verbose" ;;
    resume) options+=" --listen" ;;
    list) options+=" --json" ;;
    info) options+=" --extents --json" ;;
    verify) options+=" --threads --quiet" ;;
    prune) options+=" --keep --damaged --dry-run" ;;
    compact) options+=" --output --zstd" ;;
    esac
    case $prev in
    --threads | --keep | --zstd | --label | --deadline | --listen | --copies | -n) COMPREPLY=() ;;
    --gpu) _heddle_value "$prev" "$cur" ;;
    *)
        if [[ $cur == -* ]]; then
            _heddle_words "$options" "$cur"
        else
            _heddle_files "$cur"
        fi
        ;;
    esac
}

_heddle_vm() {
    local cur=$1 prev=$2 options="--size --no-window --help"
    if ((COMP_CWORD == 2)); then
        _heddle_words "qemu-args libvirt list --help" "$cur"
        return
    fi
    case ${COMP_WORDS[2]} in
    qemu-args) options+=" --ram --lines" ;;
    list) options="--json --help" ;;
    esac
    if [[ $prev == --size || $prev == --ram ]]; then
        COMPREPLY=()
    elif [[ $cur == -* || ${COMP_WORDS[2]} == list ]]; then
        _heddle_words "$options" "$cur"
    else
        _heddle_words "$(heddle vm list 2>/dev/null | sed -n 's/^ \([^ ]*\) .* listens$/\1/p')" "$cur"
    fi
}

complete -F _heddle heddle
