#!/usr/bin/env bash
# Brings Vulkan drivers, layers and the capture tools: with apt, and into the cache folder. `vkharness setup` runs it with the
# Python that asks libraries what they are; ci/setup sources it.
set -euo pipefail

parts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
cache=${XDG_CACHE_HOME:-${HOME:-$(cd ~ && pwd)}/.cache}/vkharness
system_packages=(libvulkan1 mesa-vulkan-drivers vulkan-validationlayers)
log=$cache/setup.log # what apt, pip and venv say; the end of it is shown when something fails
updated=
made=() # files that are there afterwards
python=${1:-} # of the environment with the harness
speaker=${speaker:-vkharness setup}
useful=(xvfb graphviz ffmpeg) # packages that something needs, which says so where they are missing

release=${OS_RELEASE:-/etc/os-release}
# What brings the same where packages are no Debian packages, by ID or ID_LIKE in that file.
declare -A elsewhere=(
    [fedora]='dnf install vulkan-loader mesa-vulkan-drivers vulkan-validation-layers gcc-c++ python3-devel vulkan-headers xorg-x11-server-Xvfb graphviz ffmpeg-free'
    [arch]='pacman -S vulkan-icd-loader vulkan-swrast vulkan-validation-layers gcc python vulkan-headers xorg-server-xvfb graphviz ffmpeg'
    [suse]='zypper install libvulkan1 libvulkan_lvp vulkan-validationlayers gcc-c++ python3-devel vulkan-headers xorg-x11-server-Xvfb graphviz ffmpeg'
)

say() { printf '%s: %s\n' "$speaker" "$*" >&2; }
fail() {
    say "$*"
    exit 1
}
show_log() { # how it ended
    ((!$1)) || [[ ! -s $log ]] || { say "the end of $log:" && tail -n 30 -- "$log" >&2; }
}

as_root() {
    if ((EUID == 0)); then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        fail "needs root (or sudo) for: $*"
    fi
}

has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

update_lists() {
    [[ -n $updated ]] || as_root apt-get update -qq >>"$log" 2>&1 || say "apt-get update failed; going on with the lists there are"
    updated=1
}

installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == *" installed" ]]; }

candidate() { [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]; }

install_packages() { # installs those of its arguments that are missing; never removes or downgrades anything
    local package missing=()
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]}"
    for package in "${missing[@]}"; do
        candidate "$package" || update_lists
    done
    local command=(apt-get install -y -qq --no-install-recommends --no-remove -o Dpkg::Use-Pty=0 "${missing[@]}")
    as_root "${command[@]}" >>"$log" 2>&1 && return 0
    update_lists # the lists were older than the archive
    as_root "${command[@]}" >>"$log" 2>&1 || fail "could not install: ${missing[*]}"
}

# Optional packages: a display that shows nothing (tests with windows), Graphviz (pictures of an order), a real
# program with a hazard (docs/reproduce.md), and a browser (tests of the page of a run). What misses them says so.
has_browser() { command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null; }

optional_packages() {
    local package wanted=() there=() missing
    for package in "${useful[@]}"; do
        installed "$package" || wanted+=("$package")
    done
    has_browser || wanted+=(chromium-headless-shell)
    ((${#wanted[@]})) || return 0
    for package in "${wanted[@]}"; do
        candidate "$package" || update_lists
        if candidate "$package"; then there+=("$package"); fi
    done
    if ((${#there[@]})) && { ((EUID == 0)) || command -v sudo >/dev/null; }; then
        say "installing ${there[*]}"
        as_root apt-get install -y -qq --no-install-recommends --no-remove -o Dpkg::Use-Pty=0 "${there[@]}" >>"$log" 2>&1 || true
    fi
    missing=()
    for package in "${wanted[@]}"; do
        installed "$package" || missing+=("$package")
    done
    ((!${#missing[@]})) || say "not to be had here: ${missing[*]}; what needs them will say so"
}

# Origins of files: beside those that were unpacked, `origin` has a line with the package (name, version, architecture,
# SHA-256), and one for each file as sha256sum writes it. `installed` in the cache folder has the first line of each package
# that apt installed. `vkharness drivers` shows both, and says which files are others since.
seal() { # FOLDER: the files as they are to stay
    [[ -s $1/package ]] || return 0
    rm -f "$1/origin"
    (cd "$1" && cat package && find . -maxdepth 1 -type f ! -name package ! -name '*.new' -printf '%P\0' | sort -z |
        xargs -0 sha256sum --) >"$1.origin"
    rm -f "$1/package"
    mv -f "$1.origin" "$1/origin"
}

note_installed() {
    local package version
    for package in "${system_packages[@]}" "${useful[@]}" chromium-headless-shell; do
        installed "$package" || continue
        version=$(dpkg-query -W -f '${Version}' "$package")
        printf '%s %s %s %s\n' "$package" "$version" "$(dpkg-query -W -f '${Architecture}' "$package")" \
            "$(apt-cache show "$package=$version" 2>/dev/null | sed -n 's/^SHA256: //p' | head -n 1)"
    done >"$cache/installed.new"
    mv -f "$cache/installed.new" "$cache/installed"
}

# Unpacks the named files of a package into a folder, without installing it, and says in `package` there which it was. Returns 1
# if the package is not to be had.
unpack() { # PACKAGE FOLDER FILE-NAME...
    local package=$1 folder=$2 work file options=(-qq)
    shift 2
    candidate "$package" || update_lists
    candidate "$package" || return 1
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    # apt's own user cannot write to this folder.
    ((EUID)) || options+=(-o APT::Sandbox::User=root)
    if ! (cd "$work" && apt-get "${options[@]}" download "$package" >>"$log" 2>&1); then
        update_lists # the lists were older than the archive
        (cd "$work" && apt-get "${options[@]}" download "$package" >>"$log" 2>&1) || { rm -rf "$work" && return 1; }
    fi
    dpkg-deb --fsys-tarfile "$work"/*.deb >"$work/package.tar"
    mkdir "$work/files"
    # A name that the package lacks is for the caller to miss.
    (cd "$work/files" && tar -x --wildcards --no-anchored -f ../package.tar "$@" 2>/dev/null) || true
    mkdir -p "$folder"
    while IFS= read -r -d '' file; do
        mv -f "$file" "$folder/" # same file system: a rename, so never half a file
    done < <(find "$work/files" -type f -print0)
    printf '%s %s\n' "$(dpkg-deb --show --showformat '${Package} ${Version} ${Architecture}' "$work"/*.deb)" \
        "$(sha256sum <"$work"/*.deb | cut -d ' ' -f 1)" >"$folder/package"
    rm -rf "$work"
}

# A second build of lavapipe: of Mesa 25, from the backports of Debian 12. The system's own stays as it is, and so do its
# lists: those of the backports are in the cache folder, of the mirrors that the system has.
newer_lavapipe() {
    local folder=$cache/lavapipe-25 lists=$cache/backports mirror
    local files=("$folder"/{libvulkan_lvp.so,lavapipe-25_icd.json})
    if ! all_exist "${files[@]}" "$folder/origin"; then
        mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
            sed -n 's/ bookworm$//p' | head -n 1) || true
        if [[ $mirror ]]; then
            say "unpacking lavapipe of Mesa 25 from bookworm-backports"
            mkdir -p "$lists"/{lists,archives}/partial
            printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm-backports main\n' \
                "$mirror" >"$lists/sources.list"
            printf '%s\n' "Dir::Etc::sourcelist \"$lists/sources.list\";" 'Dir::Etc::sourceparts "-";' \
                "Dir::State::lists \"$lists/lists\";" "Dir::Cache \"$lists\";" 'APT::Default-Release "bookworm-backports";' \
                'APT::Sandbox::User "root";' \
                >"$lists/apt.conf"
            (
                export APT_CONFIG=$lists/apt.conf
                apt-get update -qq >>"$log" 2>&1 || true
                updated=1
                unpack mesa-vulkan-drivers "$folder" libvulkan_lvp.so lvp_icd*.json
            ) || true
            rm -rf "$lists"
            keep_manifest "$folder" "${files[1]}"
            seal "$folder"
        fi
    fi
    if all_exist "${files[@]}"; then
        made+=("${files[@]}")
    else
        say "lavapipe of Mesa 25 is not to be had here (Debian 12 has it in its backports): what needs it will say so"
    fi
}

# Makes FILE of the manifest that was unpacked into FOLDER, with its library beside it.
keep_manifest() {
    local found=("$1"/lvp_icd*.json)
    [[ -e ${found[0]} ]] || return 0
    sed 's|"library_path": *"[^"]*/\{0,1\}libvulkan_lvp.so"|"library_path": "./libvulkan_lvp.so"|' "${found[0]}" >"$2.new"
    rm -f "${found[@]}"
    mv -f "$2.new" "$2"
}

all_exist() {
    local path
    for path in "$@"; do
        [[ -e $path ]] || return 1
    done
}

keep() { # FOLDER FILE...
    [[ -e $2 ]] || return 0
    mkdir -p "$1"
    mv -f "${@:2}" "$1/"
    cp "$cache/unpacked/package" "$1/"
    seal "$1"
}

# SwiftShader, and today's Khronos layer, which the same package ships (the distribution's own is years older).
chromium_parts() {
    local driver=("$cache"/swiftshader/{libvk_swiftshader.so,vk_swiftshader_icd.json})
    local layer=("$cache"/khronos/{libVkLayer_khronos_validation.so,VkLayer_khronos_validation.json})
    local package
    for package in chromium-common chromium; do
        if all_exist "${driver[@]}" "${layer[0]}" "$cache"/{swiftshader,khronos}/origin; then break; fi
        update_lists # old lists have an older layer, about which the harness knows less
        say "unpacking SwiftShader and the Khronos layer from $package"
        unpack "$package" "$cache/unpacked" libvk_swiftshader.so vk_swiftshader_icd.json \
            libVkLayer_khronos_validation.so || break
        keep "$cache/swiftshader" "$cache"/unpacked/*swiftshader*
        keep "$cache/khronos" "$cache"/unpacked/*khronos*
        rm -rf "$cache/unpacked"
        if all_exist "${driver[@]}" "$cache/swiftshader/origin"; then break; fi
    done
    if all_exist "${driver[@]}"; then
        made+=("${driver[@]}")
    else
        say "SwiftShader is not to be had here (no 'chromium' package): what needs it will say so"
    fi
    if all_exist "${layer[0]}"; then
        if ! all_exist "${layer[1]}"; then
            "$python" "$parts/layer_manifest.py" "${layer[0]}" >"${layer[1]}.new"
            mv -f "${layer[1]}.new" "${layer[1]}"
        fi
        made+=("${layer[@]}")
    fi
}

# The capture layer and its converter.
gfxreconstruct() {
    local files=("$cache"/gfxreconstruct/{gfxrecon-convert,gfxrecon-extract,libVkLayer_gfxreconstruct.so,VkLayer_gfxreconstruct.json})
    if ! all_exist "${files[@]}" "$cache/gfxreconstruct/origin"; then
        say "unpacking gfxreconstruct"
        unpack gfxreconstruct "$cache/gfxreconstruct" gfxrecon-convert gfxrecon-extract gfxrecon-info libVkLayer_gfxreconstruct.so \
            VkLayer_gfxreconstruct.json || true
        # The package's manifest names its library by the system's folders; here the library lies beside it.
        if all_exist "${files[-1]}"; then
            sed -i 's|"libVkLayer_gfxreconstruct.so"|"./libVkLayer_gfxreconstruct.so"|' "${files[-1]}"
            seal "$cache/gfxreconstruct"
        fi
    fi
    if all_exist "${files[@]}"; then
        made+=("${files[@]}")
    else
        say "gfxreconstruct is not to be had here: what needs it will say so"
    fi
}

by_hand() { # what to do on a system without apt, in one line
    local id
    # shellcheck source=/dev/null
    for id in $([[ ! -r $release ]] || (. "$release" && printf '%s %s' "${ID:-}" "${ID_LIKE:-}")); do
        if [[ ${elsewhere[$id]:-} ]]; then
            printf '%s\n' "run ${elsewhere[$id]}"
            return
        fi
    done
    printf '%s\n' "install a Vulkan loader, Mesa's lavapipe and the Khronos validation layers, and a C++ compiler with Python's headers for the native core"
}

begin() { # one at a time, with an empty log
    mkdir -p "$cache"
    exec 9>"$cache/setup.lock"
    if command -v flock >/dev/null; then
        flock 9
    fi
    : >"$log"
    trap 'show_log $?' EXIT
}

bring_packages() {
    if has_apt; then
        install_packages "${system_packages[@]}"
        optional_packages
    fi
}

bring_files() {
    if has_apt; then
        while IFS= read -r path; do
            made+=("$path")
        done < <(dpkg-query -L "${system_packages[@]}" | grep -E '/(libvulkan\.so\.1|lvp_icd.*\.json|VkLayer_khronos.*\.json)$')
        chromium_parts
        newer_lavapipe
        gfxreconstruct
        note_installed
    else
        say "no apt here: $(by_hand)"
    fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    begin
    bring_packages
    bring_files
    say "done"
fi
