# What setup may ask of the machine: packages through apt, and nothing where it may not.
# shellcheck shell=bash
#
# DIFFLOGIC_NO_APT=1 refuses all of it and prints the line to run.
# DIFFLOGIC_SYSTEM_ROOT is a made-up machine's root, for tests: /etc and /usr are looked up below it.

system_root=${DIFFLOGIC_SYSTEM_ROOT:-}

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

is_root() { [[ $(id -u) == 0 ]]; }

as_root() {
  if is_root; then "$@"; else sudo -n "$@"; fi
}

may_use_apt() {
  [[ ${DIFFLOGIC_NO_APT:-0} == 0 ]] && { is_root || sudo -n true 2>/dev/null; }
}

os_release() { # FIELD
  local file=$system_root/etc/os-release
  [[ ! -r $file ]] || sed -n "s/^$1=//p" "$file" | tr -d '"'
}

# Standard output and errors go to the log; the caller says what went wrong.
apt_quietly() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null >>"$apt_log" 2>&1
}

apt_error() { grep -h '^E:' "$apt_log" | tail -n 1 || true; }

# Succeeds where apt may be used; otherwise says what is missing and how to get it.
apt_or_advice() { # WHAT IS MISSING, PACKAGE...
  local missing=$1
  shift
  if [[ $(uname -s) == Linux ]] && command -v apt-get >/dev/null; then
    if may_use_apt; then
      say "$missing; installing $* with apt."
      return
    fi
    say "$missing; run: sudo apt-get update && sudo apt-get install -y $*"
  else
    say "$missing; install it with this system's package manager (Debian calls it $*)."
  fi
  return 1
}

apt_update() { # once; a broken third-party source must not stop us, the install will tell
  [[ -z ${apt_log:-} ]] || return 0
  apt_log=$(mktemp "${TMPDIR:-/tmp}/difflogic-apt.XXXXXX")
  trap 'rm -f "$apt_log"' EXIT
  apt_quietly update || true
}

apt_install() { # PACKAGE..., options first
  apt_quietly install -y --no-install-recommends "$@"
}
