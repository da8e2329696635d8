// Package packaging tests what lies in its folder: the recipes and the scripts of deb and rpm, alone and with stand-ins for
// the machine. It has no code of its own and nothing imports it. How packages behave on a machine is tested in systemd/box.
package packaging
