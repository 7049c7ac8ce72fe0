// The event emitter pattern: an agent that publishes what it does. Run it with: npm run example event-emitter
import { EventEmitter } from "node:events";

import { session, type Session } from "@sayso/client";

/** An agent that knows nothing about sayso. It pays with the function that it is given. */
class BillAgent extends EventEmitter<{ thinking: [string]; text: [string] }> {
  readonly #pay: (bill: { amount: string; to: string }) => Promise<void>;

  constructor(pay: (bill: { amount: string; to: string }) => Promise<void>) {
    super();
    this.#pay = pay;
  }

  async run(): Promise<void> {
    this.emit("thinking", "Looking for your bill.");
    await this.#pay({ amount: "5.00", to: "Ben" });
    this.emit("text", "Your bill is paid.");
  }
}

/** Reports the agent's events in their order. */
function translate(agent: BillAgent, s: Session): Promise<void>[] {
  const reports: Promise<void>[] = [];
  agent.on("thinking", (text) => void reports.push(s.think(text)));
  agent.on("text", (text) => void reports.push(s.say(text)));
  return reports;
}

await session("Paying bills", async (s) => {
  const pay = s.tool({ name: "payBill", irreversible: true, action: "Pay {amount} euro to {to}." }, ({ amount, to }: { amount: string; to: string }) =>
    console.log(`PAID ${amount} to ${to}`),
  );
  const agent = new BillAgent(pay);
  const reports = translate(agent, s);
  await agent.run();
  await Promise.all(reports);
});
