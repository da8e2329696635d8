package settings

import (
	"fmt"
	"os/user"
	"strconv"
)

// usualGroup is the group that packages make for callers.
const usualGroup = "executord"

func usualGroups() []string {
	if _, err := user.LookupGroup(usualGroup); err != nil {
		return nil
	}
	return []string{usualGroup}
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
