# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of dsmctl(8): commands, names of VMs, options, states.

# Those that the command has, if there is one already.
_dsmctl_options() {
  local all="--json --timeout --interval --number --symbols --force --folder --listen" each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $each in
      list | status | peers | vnodes) all="--json --folder" ;;
      hosts) all="--json --listen" ;;
      wait) all="--timeout --folder" ;;
      top) all="--json --interval --number --symbols --folder" ;;
      forget) all="--force --folder" ;;
      metrics | set | evacuate | connect | node | leaving | place | home | leave | fail) all="--folder" ;;
      *) continue ;;
    esac
    break
  done
  echo "$all --version --help"
}

_dsmctl() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local commands="list hosts status peers metrics wait top vnodes connect node leaving place home set evacuate leave fail forget" folder=/run/xenuma/dsmd
  local -a names=()
  local socket
  # Of one whose dsmd has died there is why.
  for socket in "$folder"/*.sock "$folder"/*.failed; do
    [[ -e $socket ]] && names+=("$(basename "${socket%.*}")")
  done
  COMPREPLY=()
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_dsmctl_options)" -- "$word")
  elif [[ $before =~ ^(status|peers|metrics|wait|top|vnodes|connect|node|leaving|place|home|set|evacuate|leave|fail|forget)$ ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$word")
  elif ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[COMP_CWORD - 2]} == wait ]]; then
    mapfile -t COMPREPLY < <(compgen -W "connecting running leaving ended failed over" -- "$word")
  elif ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[COMP_CWORD - 2]} == set ]]; then
    compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -W "prefetch= clear_hint= class_u= busy_wait_us= poll_us= profile=" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
  fi
}
complete -F _dsmctl dsmctl
