#include "tools/completion_script.h"

#include <fmt/format.h>

namespace idlescope::tools {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string option_names(const DescribedCommand& command) {
  std::string out;
  for (const DescribedOption& option : command.options) {
    out += (out.empty() ? "" : " ") + joined(option.names);
  }
  return out;
}

// For single quotes of sh.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// A description inside zsh's _arguments: its own brackets and colons end it.
std::string zsh_help(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string bash(const std::vector<DescribedCommand>& commands) {
  std::string names;
  for (const DescribedCommand& command : commands)
    names += (names.empty() ? "" : " ") + command.name;
  std::string out =
      "# bash completion of idlescope: source <(idlescope completion bash)\n_idlescope() {\n";
  out += "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i\n";
  out += "  COMPREPLY=()\n";
  out += "  for ((i = 1; i < COMP_CWORD; ++i)); do\n";
  out += "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n";
  out += "      if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$word\"))\n";
  out += "      else COMPREPLY=($(compgen -f -- \"$word\")); fi\n";
  out += "      return\n    fi\n";
  out += "    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}\n  done\n";
  out += "  case $command in\n";
  out += fmt::format("    '') COMPREPLY=($(compgen -W {} -- \"$word\")); return;;\n",
                     quoted(names + " --help --version"));
  for (const DescribedCommand& command : commands) {
    out += fmt::format("    {})\n", command.name);
    out += "      case $before in\n";
    for (const DescribedOption& option : command.options) {
      if (option.values.empty()) continue;
      std::string pattern;
      for (const std::string& name : option.names) pattern += (pattern.empty() ? "" : "|") + name;
      out += fmt::format("        {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return;;\n",
                         pattern, quoted(joined(option.values)));
    }
    out += "      esac\n";
    out += fmt::format("      [[ $word == -* ]] && COMPREPLY=($(compgen -W {} -- \"$word\"));;\n",
                       quoted(option_names(command)));
  }
  out += "  esac\n}\n";
  return out + "complete -o default -F _idlescope idlescope\n";
}

std::string zsh(const std::vector<DescribedCommand>& commands) {
  std::string out =
      "#compdef idlescope\n# zsh completion of idlescope: source <(idlescope completion zsh)\n";
  out += "_idlescope() {\n  local -a commands\n  commands=(\n";
  for (const DescribedCommand& command : commands) {
    out += "    " + quoted(command.name + ":" + zsh_help(command.help)) + "\n";
  }
  out += "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n";
  out += "  case $words[2] in\n";
  for (const DescribedCommand& command : commands) {
    out += fmt::format("    {})\n      _arguments -S", command.name);
    for (const DescribedOption& option : command.options) {
      for (const std::string& name : option.names) {
        std::string value;
        if (option.takes_value) {
          value = option.values.empty() ? ": :_files" : ": :(" + joined(option.values) + ")";
        }
        out += " \\\n        " + quoted(name + "[" + zsh_help(option.help) + "]" + value);
      }
    }
    out += std::string(" \\\n        ") +
           (command.runs_a_command ? "'*:: :_normal'" : "'*: :_files'") + ";;\n";
  }
  out += "  esac\n}\n";
  return out +
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _idlescope \"$@\"; "
         "else compdef _idlescope idlescope; fi\n";
}

std::string fish(const std::vector<DescribedCommand>& commands) {
  std::string out = "# fish completion of idlescope: idlescope completion fish | source\n";
  for (const DescribedCommand& command : commands) {
    out += fmt::format("complete -c idlescope -n __fish_use_subcommand -f -a {} -d {}\n",
                       command.name, quoted(command.help));
    for (const DescribedOption& option : command.options) {
      out += fmt::format("complete -c idlescope -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        out += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) out += " -r";
      if (!option.values.empty()) out += " -f -a " + quoted(joined(option.values));
      out += " -d " + quoted(option.help) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_script(Shell shell, const std::vector<DescribedCommand>& commands) {
  switch (shell) {
    case Shell::kBash:
      return bash(commands);
    case Shell::kZsh:
      return zsh(commands);
    case Shell::kFish:
      break;
  }
  return fish(commands);
}

}  // namespace idlescope::tools
