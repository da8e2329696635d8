#!/bin/bash
# sdbox.sh - run a test under a REAL systemd (PID 1), as root, with no help from
# the machine's own init.  Two boxes, one root file system, one contract:
#
#   sdbox.sh deps   nspawn|qemu|all        apt-get install what a box needs
#   sdbox.sh rootfs OUT.tar [PKG...]       make the Debian root (once; cache it)
#   sdbox.sh check  nspawn|qemu            say why this machine cannot run that box (77)
#   sdbox.sh kernel DIR                    fetch kernel + busybox for qemu into DIR
#   sdbox.sh nspawn ROOT.tar SHARE         fast: namespaces, host kernel, cgroup v1
#   sdbox.sh qemu   ROOT.tar SHARE KDIR    slow: own kernel, pure cgroup v2, TCG
#
# The contract: SHARE holds an executable `run` and whatever it needs. It is
# copied to /box/in inside and run as root (cwd /box/in, BOX=nspawn|qemu,
# BOX_OUT=/box/out) once the machine is up. Its output streams to our stdout,
# its exit code becomes ours, what it leaves in $BOX_OUT comes back in SHARE/out.
# Every box is thrown away afterwards. 77: this machine cannot run that box.
#
# Environment: TMPDIR (scratch; tmpfs is fastest), BOX_TIMEOUT (seconds, 900),
# BOX_CPUS (2), BOX_MEM (MiB for qemu, 2048), BOX_DEBUG=1 (keep boot messages).
set -euo pipefail
umask 022
: "${TMPDIR:=/tmp}" "${BOX_TIMEOUT:=900}" "${BOX_CPUS:=2}" "${BOX_MEM:=2048}" "${BOX_DEBUG:=}"
base_pkgs=systemd,systemd-sysv,dbus,libpam-systemd,libnss-systemd,procps,iproute2,tzdata
die() { echo "sdbox: $*" >&2; exit 125; }
cannot() { echo "sdbox: this machine cannot run $*" >&2; exit 77; } # nothing is wrong but the machine
note() { [ -z "$BOX_DEBUG" ] || echo "sdbox: $* [$SECONDS s]" >&2; }

cmd_deps() {
  local p=(mmdebstrap)
  case ${1:-all} in
    nspawn) p+=(systemd-container) ;;
    qemu)   p+=(qemu-system-x86 e2fsprogs) ;;
    all)    p+=(systemd-container qemu-system-x86 e2fsprogs) ;;
  esac
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${p[@]}"
}

# The distribution's sources as this machine has them (deb822 or one-line),
# so that no mirror is written down here.
debian_sources() {
  local f
  for f in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -s "$f" ] && grep -qiE '^(deb |types:)' "$f"; then echo "$f"; return; fi
  done
  die "no Debian apt sources found"
}

cmd_rootfs() { # OUT.tar [PKG...]
  local out=$1; shift
  local extra; extra=$(IFS=,; echo "$*")
  # shellcheck disable=SC1091
  mmdebstrap --quiet --format=tar --variant="${BOX_VARIANT:-apt}" --include="$base_pkgs${extra:+,$extra}" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$(. /etc/os-release; echo "$VERSION_CODENAME")" "$out.part" "$(debian_sources)"
  mv "$out.part" "$out"
}

cmd_kernel() { # DIR: vmlinuz, virtio modules, busybox; nothing is installed here
  local d; mkdir -p "$1"; d=$(cd "$1" && pwd)
  local t; t=$(mktemp -d "$TMPDIR/sdk.XXXXXX")
  local k; k=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | tail -1)
  [ -n "$k" ] || die "no kernel package (apt-get update?)"
  (cd "$t" && apt-get -q -o APT::Sandbox::User=root download "$k" busybox-static >/dev/null && for f in *.deb; do dpkg -x "$f" x; done)
  local n i=$t/i; n=$(basename "$t"/x/boot/vmlinuz-*); n=${n#vmlinuz-}
  mkdir -p "$i/m" "$i/dev" "$i/new"
  cp "$t/x/bin/busybox" "$i/busybox"
  find "$t/x/lib/modules/$n" \( -name virtio.ko -o -name virtio_ring.ko -o -name 'virtio_pci*.ko' -o -name virtio_mmio.ko -o -name virtio_blk.ko \) -exec cp {} "$i/m/" \;
  cat >"$i/init" <<'I'
#!/busybox sh
# modules in dependency order, the cheap way: try them all a few times
for pass in 1 2 3 4; do for m in /m/*.ko; do /busybox insmod $m 2>/dev/null; done; done
/busybox mount -t devtmpfs dev /dev
/busybox mount -t ext4 /dev/vda /new
exec /busybox switch_root /new /lib/systemd/systemd
I
  chmod 755 "$i/init"
  (cd "$i" && find . | ./busybox cpio -o -H newc 2>/dev/null) >"$d/initrd.part"
  cp "$t/x/boot/vmlinuz-$n" "$d/vmlinuz"; mv "$d/initrd.part" "$d/initrd"
  rm -rf "$t"
}

# one scratch folder; whatever ends us, the box ends and nothing stays behind
w='' pid='' groups=()
scratch() { w=$(mktemp -d "$TMPDIR/sdbox.XXXXXX"); trap cleanup EXIT; trap 'exit 143' TERM INT HUP; }
cleanup() {
  local d
  trap - EXIT; trap '' TERM INT HUP
  [ -z "$pid" ] || { kill -TERM "$pid" 2>/dev/null && wait "$pid"; } || true
  for d in "${groups[@]}"; do find "$d" -depth -type d -exec rmdir {} \; 2>/dev/null || true; done
  rm -rf "$w"
}

# unpack ROOT.tar and add the unit that runs the test
make_root() { # ROOT.tar DIR
  mkdir -p "$2"; tar -C "$2" --numeric-owner -xf "$1"
  local e=$2/etc
  mkdir -p "$2/box/in" "$2/box/out" "$e/systemd/system/multi-user.target.wants"
  echo sdbox >"$e/hostname"; : >"$e/machine-id"; : >"$e/fstab"
  printf '127.0.0.1 localhost sdbox\n::1 localhost\n' >"$e/hosts"
  local u # nothing that a test machine does not need
  for u in getty@tty1.service serial-getty@ttyS0.service console-getty.service apt-daily.timer \
      apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer \
      systemd-timesyncd.service systemd-tmpfiles-clean.timer; do
    ln -sf /dev/null "$e/systemd/system/$u"
  done
  ln -sf ../box-run.service "$e/systemd/system/multi-user.target.wants/"
}

unit() { # BOX EXTRA-SERVICE-LINES AFTER-TEST: the unit that runs the test
  cat <<U
[Unit]
Description=the test
After=multi-user.target
[Service]
Type=exec
Environment=BOX=$1 BOX_OUT=/box/out
WorkingDirectory=/box/in
StandardInput=null
StandardError=inherit
$2
ExecStart=/box/in/run
ExecStopPost=/bin/sh -c 'echo \$EXIT_CODE \$EXIT_STATUS >/box/out/.rc; journalctl -q -b -o short-monotonic --no-pager >/box/out/journal.log; $3 systemctl --no-block poweroff'
U
}

cmd_check() { # nspawn|qemu: what this machine lacks for a box
  local why=
  [ "$1" = nspawn ] || return 0
  if [ "$(id -u)" != 0 ]; then why='it takes root'
  elif ! command -v systemd-nspawn >/dev/null; then why='systemd-nspawn is not installed (sdbox.sh deps nspawn)'
  elif ! unshare --mount --pid --fork --cgroup true 2>/dev/null; then why='this process may make no namespaces (a container without privileges?)'
  elif ! grep -qE '^[0-9]+:[a-z]' /proc/self/cgroup; then why='the control groups are not mounted as hierarchies of version 1'
  fi
  [ -z "$why" ] || cannot "nspawn: $why. The other box needs none of that: qemu"
}

cmd_nspawn() { # ROOT.tar SHARE
  cmd_check nspawn
  local tar=$1 share; share=$(cd "$2" && pwd)
  [ -x "$share/run" ] || die "no executable $share/run"
  local id=sdbox-$$ rc=0 ctl path mnt d c
  scratch
  note unpack; make_root "$tar" "$w/root"
  unit nspawn StandardOutput=file:/box/fifo '' >"$w/root/etc/systemd/system/box-run.service"
  cp -a "$share/." "$w/root/box/in/"; rm -rf "$w/root/box/in/out"
  # nspawn mounts the v1 controllers read-only (it cannot know that these groups
  # are ours alone); this stage makes them writable again, then becomes systemd.
  # 'bind': change this mount only, never the machine's own.
  cat >"$w/root/box/init" <<'I'
#!/bin/sh
for c in /sys/fs/cgroup/*/; do mount -o remount,bind,rw,nosuid,nodev,noexec "$c"; done
exec /lib/systemd/systemd --log-target=journal --show-status=no
I
  chmod 755 "$w/root/box/init"; mkfifo "$w/root/box/fifo"

  # A group of our own below our present one, in each mounted hierarchy: the
  # box sees only these (cgroup namespace) and they are removed at the end.
  while IFS=: read -r _ ctl path; do
    case $ctl in '') mnt=/sys/fs/cgroup/unified ;; name=systemd) mnt=/sys/fs/cgroup/systemd ;; *) mnt=/sys/fs/cgroup/$ctl ;; esac
    mountpoint -q "$mnt" || continue
    d=$mnt${path%/}/$id
    mkdir "$d"; groups+=("$d")
    if [ "$ctl" = cpuset ]; then
      for c in cpus mems; do cat "$mnt${path%/}/cpuset.$c" >"$d/cpuset.$c"; done
    fi
  done </proc/self/cgroup
  [ ${#groups[@]} -gt 0 ] || cannot "nspawn: there is no cgroup hierarchy of version 1 under /sys/fs/cgroup. The other box needs none: qemu"

  cat "$w/root/box/fifo" & local catter=$!
  exec 9<>"$w/root/box/fifo" # keeps the fifo open until the box has ended
  note boot
  ( trap - EXIT TERM INT HUP
    for d in "${groups[@]}"; do echo "$BASHPID" >"$d/cgroup.procs"; done
    # /run is hidden so that nspawn leaves nothing in this machine's
    exec setpriv --pdeathsig TERM timeout -k 10 "$BOX_TIMEOUT" unshare --mount sh -c 'mount -t tmpfs tmpfs /run && exec "$@"' sh \
      systemd-nspawn -q -D "$w/root" -M "$id" --register=no --keep-unit --private-network --console=pipe \
      --kill-signal=SIGRTMIN+4 --resolv-conf=off --timezone=off --link-journal=no --system-call-filter=bpf /box/init
  ) </dev/null 9<&- >"$w/log" 2>&1 & pid=$!
  wait "$pid" || rc=$?
  pid=; note "ended rc=$rc"
  exec 9<&-; wait "$catter" || true
  [ -z "$BOX_DEBUG" ] || cat "$w/log" >&2
  collect "$w/root/box/out" "$share" "$rc" "$w/log"
}

cmd_qemu() { # ROOT.tar SHARE KDIR
  local tar=$1 share kdir=$3; share=$(cd "$2" && pwd)
  [ -x "$share/run" ] || die "no executable $share/run"
  local rc=0
  scratch
  note unpack; make_root "$tar" "$w/root"
  unit qemu "$(printf '%s\n' StandardOutput=tty TTYPath=/dev/ttyS1 'ExecStartPre=/bin/stty -F /dev/ttyS1 raw -echo')" \
    'tar -C /box/out -cf /dev/vdb .; sync;' >"$w/root/etc/systemd/system/box-run.service"
  cp -a "$share/." "$w/root/box/in/"; rm -rf "$w/root/box/in/out"
  note image # sparse; no loop device, no mount
  mke2fs -q -t ext4 -d "$w/root" -m 0 -O ^has_journal -E lazy_itable_init=1 -F "$w/root.img" 3G >/dev/null
  rm -rf "$w/root"; truncate -s 256M "$w/out.img"
  note boot
  # qemu64: the fewer CPU features, the cheaper the emulation (measured: 2/3 of 'max')
  setpriv --pdeathsig TERM timeout -k 10 "$BOX_TIMEOUT" qemu-system-x86_64 -M q35,hpet=off,usb=off -accel tcg,thread=multi,tb-size=512 \
    -cpu "${BOX_CPU:-qemu64}" -smp "$BOX_CPUS" -m "$BOX_MEM" -nodefaults -no-user-config -no-reboot -display none \
    -serial "file:$w/log" -serial stdio -kernel "$kdir/vmlinuz" -initrd "$kdir/initrd" \
    -append "console=ttyS0 quiet rw panic=-1 mitigations=off nokaslr random.trust_cpu=on systemd.show_status=0 ${BOX_APPEND:-}" \
    -drive "file=$w/root.img,format=raw,if=virtio,cache=unsafe" \
    -drive "file=$w/out.img,format=raw,if=virtio,cache=unsafe" </dev/null & pid=$!
  wait "$pid" || rc=$?
  pid=; note "ended rc=$rc"
  [ -z "$BOX_DEBUG" ] || cat "$w/log" >&2
  mkdir "$w/out"; tar -C "$w/out" -xf "$w/out.img" 2>/dev/null || true
  collect "$w/out" "$share" "$rc" "$w/log"
}

# copy results back and turn systemd's word on the test into an exit code
collect() { # OUTDIR SHARE BOXRC LOG
  local code='' status=''
  if [ -s "$1/.rc" ]; then read -r code status <"$1/.rc"; rm "$1/.rc"; fi
  rm -rf "$2/out"; cp -a "$1" "$2/out"
  if [ "$3" = 124 ]; then echo "sdbox: not done after $BOX_TIMEOUT s" >&2; return 124; fi
  case $code in
    exited) return "$status" ;;
    '') echo "sdbox: the box ended (rc $3) before the test did; its last words:" >&2; tail -20 "$4" >&2; return 125 ;;
    *) echo "sdbox: test $code by $status" >&2; return 126 ;;
  esac
}

case ${1:-} in
  deps|check|rootfs|kernel|nspawn|qemu) c=$1; shift; "cmd_$c" "$@" ;;
  *) sed -n '2,/^set -/{/^#/p}' "$0"; exit 2 ;;
esac
