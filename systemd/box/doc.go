// Package box tests the units and the packages as an administrator meets them: under a systemd that is PID 1, with root,
// installed by dpkg. It has no code of its own but its tests, and no product code calls it. `make check-systemd` compiles
// them, boots a machine that is thrown away (sdbox.sh) and runs them in it; anywhere else they skip, since they install
// packages, make users and stop services.
//
// Tests run one after another and share the machine. Each begins with a fresh or an installed package (see helpers_test.go)
// and leaves nothing that the next would notice; those of a reported fault carry its id.
package box
