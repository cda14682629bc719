// The addresses of the page's screens, after its #.

/** A screen, and what it shows. */
export type Route =
  | { screen: "inbox" | "sessions" | "settings" }
  | { screen: "new"; project?: string }
  | { screen: "question"; project: string; approval: string }
  | { screen: "session"; project: string; session: string; approval?: string }
  | { screen: "changes"; project: string; session: string };

/** The route of an address. An unknown one leads to the inbox. */
export function routeOf(hash: string): Route {
  const [screen, project, id, more] = hash.replace(/^#?\/?/, "").split("/").map(decoded);
  switch (screen) {
    case "sessions":
    case "settings":
      return { screen };
    case "new":
      return { screen, ...(project && { project }) };
    case "question":
      return project && id ? { screen, project, approval: id } : { screen: "inbox" };
    case "session":
      return project && id ? { screen, project, session: id, ...(more && { approval: more }) } : { screen: "sessions" };
    case "changes":
      return project && id ? { screen, project, session: id } : { screen: "sessions" };
    default:
      return { screen: "inbox" };
  }
}

/** The address of a route. */
export function hashOf(route: Route): string {
  const parts: Array<string | undefined> = [route.screen];
  if ("project" in route) parts.push(route.project);
  if ("session" in route) parts.push(route.session);
  if ("approval" in route) parts.push(route.approval);
  return `#/${parts.filter((part) => part !== undefined).map(encodeURIComponent).join("/")}`;
}

/** The code of an address with which a device is paired. undefined: it has none. */
export function codeOf(hash: string): string | undefined {
  return /^#code=(.+)$/.exec(hash)?.[1]?.trim();
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
