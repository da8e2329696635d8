package settings

import (
	"fmt"
	"os/user"
	"strconv"
)

// Groups that packages make.
const (
	callersGroup   = "executord"
	operatorsGroup = "executord-admin"
)

// ifThere is a list of the group, where there is one.
func ifThere(group string) []string {
	if _, err := user.LookupGroup(group); err != nil {
		return nil
	}
	return []string{group}
}

// GroupIDs are the numbers of groups that are given by name or number.
func GroupIDs(groups []string) (ids []uint32, err error) {
	for _, group := range groups {
		number := group
		if _, err := strconv.ParseUint(group, 10, 32); err != nil {
			found, err := user.LookupGroup(group)
			if err != nil {
				return nil, fmt.Errorf("there is no group %.64q", group)
			}
			number = found.Gid
		}
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the number of group %.64q is no number", group)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}
