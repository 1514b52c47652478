# A Vulkan driver for the GPU engine. Without a GPU that is Mesa's software adapter, lavapipe.
# shellcheck shell=bash
# Sourced after system.sh.
: "${system_root?}"

vulkan_packages=(mesa-vulkan-drivers libvulkan1)
backports_source=$system_root/etc/apt/sources.list.d/difflogic-backports.sources

any_file() { # PATTERN...: one of them names a file
  local path
  for path in "$@"; do
    [[ ! -e $path ]] || return 0
  done
  return 1
}

has_vulkan_driver() {
  local data=${XDG_DATA_HOME:-${HOME:-/root}/.local/share}
  [[ -n ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-} ]] ||
    any_file "$system_root"/{etc,usr/share,usr/local/share}/vulkan/icd.d/*.json "$data"/vulkan/icd.d/*.json
}

has_vulkan_loader() {
  any_file "$system_root"/{usr/lib,usr/lib/*-linux-gnu*,usr/lib64,usr/local/lib,lib,lib64}/libvulkan.so.1
}

# Succeeds even if no driver can be installed: the CPU and reference engines need none.
ensure_vulkan() {
  [[ $(uname -s) == Linux ]] || return 0
  if has_vulkan_driver && has_vulkan_loader; then
    return 0
  fi
  local missing='No Vulkan driver is installed, so only the CPU and reference engines can run'
  apt_or_advice "$missing" "${vulkan_packages[@]}" || return 0
  apt_update
  if ! { mesa_from_backports || apt_install "${vulkan_packages[@]}"; }; then
    say "apt could not install ${vulkan_packages[*]} ($(apt_error)); only the CPU and reference engines can run until you run:" \
      "sudo apt-get update && sudo apt-get install -y ${vulkan_packages[*]}"
  fi
}

# Debian 12 has Mesa 22.3, which cuts long loops short, so that the GPU engine refuses it; its backports have Mesa 25.
mesa_from_backports() {
  [[ $(os_release ID) == debian && $(os_release VERSION_ID) == 12 ]] || return 1
  if ! backports_have_mesa; then
    add_backports || return 1
  fi
  say "taking it from bookworm-backports, since Debian 12's own Mesa is too old for the GPU engine."
  apt_install -t bookworm-backports "${vulkan_packages[@]}" && return
  say "bookworm-backports could not be installed from ($(apt_error)); taking Debian 12's own Mesa, too old for the GPU engine."
  return 1
}

backports_have_mesa() {
  apt-cache madison mesa-vulkan-drivers 2>/dev/null | grep -q bookworm-backports
}

# The machine's own mirror, whatever file or format it is configured in. Needs fresh package lists.
debian_mirror() {
  # shellcheck disable=SC2016  # $(REPO_URI) is apt's word, not the shell's
  apt-get indextargets --format '$(REPO_URI)' \
    'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' 'Component: main' 2>/dev/null | head -n 1
}

add_backports() {
  local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  if [[ -z $mirror ]]; then
    say "no Debian mirror is configured to take bookworm-backports from; taking the Mesa at hand."
    return 1
  fi
  say "adding the package source $backports_source (bookworm-backports, from this machine's own Debian mirror)."
  {
    printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\n' "$mirror"
    [[ ! -e $system_root$keyring ]] || printf 'Signed-By: %s\n' "$keyring"
  } | as_root tee "$backports_source" >/dev/null || return 1
  # Only this source, so that only its own trouble counts.
  if apt_quietly update -o APT::Update::Error-Mode=any -o APT::Get::List-Cleanup=0 \
    -o Dir::Etc::SourceList="$backports_source" -o Dir::Etc::SourceParts=- && backports_have_mesa; then
    return 0
  fi
  as_root rm -f "$backports_source"
  say "bookworm-backports could not be read, so its source was removed again; taking Debian 12's own Mesa, too old for the GPU engine."
  return 1
}
