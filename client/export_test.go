package client

// Pending is how many requests wait for their responses.
func Pending(c *Client) int {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}
