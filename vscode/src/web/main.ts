// Starts the page: pairs the device, or connects it.
import { App } from "./app";
import { Line } from "./line";
import type { Refusal, Socket } from "./line";
import { Pairing } from "./pairing";
import type { Paired } from "./protocol";
import { codeOf } from "./routes";
import { deviceKey, keepDeviceKey, local } from "./store";

const root = document.getElementById("app")!;

const refusals: Record<Refusal, string> = {
  not_paired: "This device is not paired, or no longer.",
  removed: "This device was removed.",
};

/** pair shows the form that pairs this device. */
function pair(options: { code?: string; why?: string } = {}): void {
  const pairing = new Pairing(async ({ key }: Paired) => {
    await keepDeviceKey(key);
    connect(key);
  }, options);
  root.classList.add("web");
  root.replaceChildren(pairing.element);
  pairing.focus();
}

/** connect shows the page of a paired device. */
function connect(key: string): void {
  const address = new URL("connect", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  const line = new Line({ key, open: () => new WebSocket(address) as Socket });
  let ended = false;
  let leaving = false;
  const app = new App(root, line, local, async () => {
    leaving = true; // the server ends the connections of a device that leaves
    try {
      await line.request("web.leave", {});
    } catch (error) {
      leaving = false;
      if (!ended) throw error;
    }
    await end("You are signed out.");
  });
  const end = async (why: string): Promise<void> => {
    if (ended) return;
    ended = true;
    line.close();
    app.dispose();
    await forget();
    pair({ why });
  };
  line.onRefused((refusal) => void end(leaving ? "You are signed out." : refusals[refusal]));
  line.open();
}

/** forget removes what this browser keeps of the device. */
async function forget(): Promise<void> {
  for (const key of local.keys("")) local.set(key, undefined);
  await keepDeviceKey(undefined);
  const subscription = await navigator.serviceWorker?.getRegistration().then((registration) => registration?.pushManager?.getSubscription());
  await subscription?.unsubscribe().catch(() => undefined);
}

async function start(): Promise<void> {
  const code = codeOf(location.hash);
  // A code counts once, and must not stay in the history.
  if (code !== undefined) history.replaceState(null, "", "#/inbox");
  const key = await deviceKey().catch(() => undefined);
  if (key === undefined) pair({ ...(code !== undefined && { code }) });
  else connect(key);
}

// The service worker opens the question of a notification in this page.
navigator.serviceWorker?.addEventListener("message", ({ data }) => {
  const { open } = (data ?? {}) as { open?: unknown };
  if (typeof open === "string" && open.startsWith("#/question/")) location.hash = open;
});
navigator.serviceWorker?.register("sw.js").catch((error: unknown) => console.warn("the page has no service worker:", error));
void start();
