import {
  choicesOf,
  type CompletedPlace,
  type CompletionTable,
  flagsWith,
  quoted,
} from "./completion_table.ts";

/** The completions of bash 3.2 and later. */
export function bashScript({ places, settings }: CompletionTable): string {
  return `# bash completion for weir: source <(weir completions bash)
_weir() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local place="" first=1 index names="" flags="" texts="" files="" choices="" arguments=""
  local IFS=$' \\t\\n'
  [[ \${COMP_WORDS[1]} == help && COMP_CWORD -gt 1 ]] && first=2
  for ((index = first; index < COMP_CWORD && index < first + 2; index++)); do
    [[ \${COMP_WORDS[index]} == -* ]] && break
    place+="\${place:+ }\${COMP_WORDS[index]}"
  done
  case "$place" in
${places.map(caseOf).join("\n")}
  esac
  if [[ $first == 2 ]]; then
    flags="" texts="" files="" choices="" arguments=""
    [[ $place == settings ]] && names+=" ${settings.join(" ")}"
  fi
  COMPREPLY=()
  if [[ " $choices" == *" $previous="* ]]; then
    choices="\${choices#*"$previous="}"
    choices="\${choices%% *}"
    COMPREPLY=($(compgen -W "\${choices//,/ }" -- "$current"))
  elif [[ " $texts " == *" $previous "* ]]; then
    return
  elif [[ " $files " == *" $previous "* || ($arguments == files && $current != -*) ]]; then
    IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2> /dev/null
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$names" -- "$current"))
  fi
}
complete -F _weir weir`;
}

function caseOf(place: CompletedPlace): string {
  const parts = {
    names: place.names.map(({ name }) => name).join(" "),
    flags: place.flags.map(({ name }) => name).join(" "),
    texts: flagsWith(place, "text").join(" "),
    files: flagsWith(place, "files").join(" "),
    choices: choicesOf(place).join(" "),
    arguments: place.hasFiles ? "files" : "",
  };
  const set = Object.entries(parts).flatMap(([name, text]) => text === "" ? [] : [`${name}=${quoted(text)}`]);
  return `    ${patternOf(place)}) ${set.join(" ")} ;;`;
}

/** A command of one word also matches with its first argument. */
function patternOf({ words, flags }: CompletedPlace): string {
  return words.includes(" ") || flags.length === 0 ? quoted(words) : `${words} | ${quoted(`${words} `)}*`;
}
