package worker

// Layers of isolation: each is one means that keeps a worker process from everything but its channel, by the name that
// operators see. The set is append-only. Who starts the process makes the first group, the process itself the second.
const (
	LayerProcess = "process"           // a process of its own, with no environment, and no descriptor but those it needs
	LayerUser    = "user-namespace"    // no user of the machine, and no privilege over what is outside
	LayerNetwork = "network-namespace" // no network interface, and no abstract unix socket but its own
	LayerPID     = "pid-namespace"     // no other process can be named; all end with the worker
	LayerIPC     = "ipc-namespace"     // no System V objects and POSIX message queues but its own
	LayerUTS     = "uts-namespace"     // host and domain name are a copy
	LayerID      = "unprivileged-user" // outside, its user is not root
	LayerRlimits = "rlimits"           // few descriptors and threads, no cores, files, locked memory and message queues

	LayerNoNewPrivileges = "no-new-privileges" // no program gives it privileges
	LayerKeyring         = "session-keyring"   // its keyring is a new one
	LayerRoot            = "empty-root"        // its file system is an empty folder that nobody can write to
	LayerLandlock        = "landlock"          // Landlock denies all it can: files, TCP, signals and sockets to others
	LayerCapabilities    = "no-capabilities"   // no capability, not even within its user namespace
	LayerDump            = "no-dump"           // no core, and nobody of the same user can trace it
	LayerSeccomp         = "seccomp"           // only system calls of a list
)

// Layers lists the names of all, in the order in which they are made.
func Layers() []string {
	return []string{
		LayerProcess, LayerUser, LayerNetwork, LayerPID, LayerIPC, LayerUTS, LayerID, LayerRlimits,
		LayerNoNewPrivileges, LayerKeyring, LayerRoot, LayerLandlock, LayerCapabilities, LayerDump, LayerSeccomp,
	}
}
