// The extension, as the page speaks to it: requests and notifications of src/panel/protocol.ts.
import type { PanelMethod, PanelNotifications, PanelParams, PanelResult, PassedMethod } from "../panel/protocol";
import { JSONRPCClient, JSONRPCServer } from "../rpc/index";
import type { RPCTransport } from "../rpc/index";

/** How long an answer may take, in milliseconds; 0: without end, since a person is asked, or an agent. */
const timeouts: Partial<Record<PanelMethod | PassedMethod, number>> = {
  "panel.answer": 0,
  "panel.openLink": 0,
  "panel.command": 0,
  "session.set": 0,
};
const timeout = 60_000;

export class Host {
  private readonly client: JSONRPCClient;
  private readonly server: JSONRPCServer;

  constructor(transport: RPCTransport) {
    this.client = new JSONRPCClient(transport, { timeout });
    this.server = new JSONRPCServer(transport);
  }

  /** Rejects with an RPCError, or an RPCTimeoutError. */
  request<M extends PanelMethod | PassedMethod>(method: M, params: PanelParams<M>): Promise<PanelResult<M>> {
    return this.client.request<PanelResult<M>>(method, params as unknown as Record<string, unknown>, { timeout: timeouts[method] ?? timeout });
  }

  on<N extends keyof PanelNotifications>(name: N, handler: (params: PanelNotifications[N]) => void): void {
    this.server.onNotify(name, (params) => handler(params as unknown as PanelNotifications[N]));
  }
}
