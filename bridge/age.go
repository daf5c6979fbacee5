package bridge

import (
	"fmt"
	"time"
)

// day is as long as people take it to be.
const day = 24 * time.Hour

// age is how long ago something was, in one unit.
func age(since time.Time) string { return rough(time.Since(since)) }

func rough(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.unit); n == 1 {
			return "a" + map[bool]string{true: "n"}[u.name == "hour"] + " " + u.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, u.name)
		}
	}
	return "less than a minute"
}
