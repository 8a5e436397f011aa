import {
  choicesOf,
  type CompletedPlace,
  type Completion,
  type CompletionTable,
  flagsWith,
  quoted,
} from "./completion_table.ts";

/** The completions of zsh, for a file \`_weir\` in \`fpath\` or for \`source\`. */
export function zshScript({ places, settings }: CompletionTable): string {
  return `#compdef weir
# zsh completion for weir: source <(weir completions zsh)
_weir() {
  local current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}" place="" arguments=""
  local -i first=2 index
  local -a names flags texts files choices
  [[ \${words[2]} == help && CURRENT -gt 2 ]] && first=3
  for ((index = first; index < CURRENT && index < first + 2; index++)); do
    [[ \${words[index]} == -* ]] && break
    place+="\${place:+ }\${words[index]}"
  done
  case "$place" in
${places.map(caseOf).join("\n")}
  esac
  if [[ $first == 3 ]]; then
    flags=() texts=() files=() choices=() arguments=""
    [[ $place == settings ]] && names+=(${settings.join(" ")})
  fi
  local choice="\${choices[(r)$previous=*]}"
  if [[ -n $choice ]]; then
    compadd -- \${(s:,:)choice#*=}
  elif [[ -n \${texts[(r)$previous]} ]]; then
    return 1
  elif [[ -n \${files[(r)$previous]} || ($arguments == files && $current != -*) ]]; then
    _files
  elif [[ $current == -* ]]; then
    _describe -o flag flags
  else
    _describe command names
  fi
}
if [[ \${funcstack[1]} == _weir ]]; then
  _weir "$@"
else
  compdef _weir weir
fi`;
}

function caseOf(place: CompletedPlace): string {
  const lists = {
    names: place.names.map(described),
    flags: place.flags.map(described),
    texts: flagsWith(place, "text"),
    files: flagsWith(place, "files"),
    choices: choicesOf(place).map(quoted),
  };
  const set = Object.entries(lists)
    .flatMap(([name, items]) => items.length === 0 ? [] : [`${name}=(${items.join(" ")})`]);
  if (place.hasFiles) set.push("arguments=files");
  return `    ${patternOf(place)}) ${set.join(" ")} ;;`;
}

/** A command of one word also matches with its first argument. */
function patternOf({ words, flags }: CompletedPlace): string {
  return words.includes(" ") || flags.length === 0
    ? `(${quoted(words)}`
    : `(${words}|${quoted(`${words} `)}*`;
}

function described({ name, doc }: Completion): string {
  return quoted(doc === "" ? name : `${name}:${doc}`);
}
