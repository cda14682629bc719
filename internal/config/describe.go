package config

// A Description is what people and clients are told of an agent without starting it.
type Description struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver" doc:"acp, command or executor."`
	Default   bool   `json:"default" doc:"It is asked where nobody names an agent."`
	Available bool   `json:"available" doc:"Its program was found."`
	Path      string `json:"path,omitempty" doc:"Where its program is."`
	Install   string `json:"install,omitempty" doc:"How to get it, where it is not available."`
	CLI       string `json:"cli,omitempty" doc:"Where the agent's own command line is, if its adapter for the Agent Client Protocol is missing."`
	Source    string `json:"source" doc:"Who said of it last: built-in, user or project."`
	Trusted   bool   `json:"trusted" doc:"False: a project's file defines it that the user has not trusted, so it is not started."`
}

// Describe describes every agent, in the order of [Config.List].
func (c *Config) Describe() []Description {
	list := []Description{}
	for _, a := range c.List() {
		d := Description{
			Name: a.Name, Title: a.Title, Driver: a.Driver, Default: a.Name == c.Default(),
			Available: a.Available, Path: a.Path, Source: a.Source, Trusted: a.Trusted,
		}
		if !a.Available {
			d.Install, d.CLI = a.Install(), a.CLI
		}
		list = append(list, d)
	}
	return list
}
