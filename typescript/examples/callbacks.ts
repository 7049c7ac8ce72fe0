// The callback pattern: a framework that calls back. Run it with: npm run example callbacks
import { session, type Session, type ToolCall } from "@sayso/client";

interface Callbacks {
  onToken(token: string): Promise<void>;
  onToolStart(id: string, tool: string): Promise<void>;
  onToolEnd(id: string, result: string): Promise<void>;
}

/** Callbacks report. They cannot refuse a call, so dangerous functions have their own gate, below. */
function callbacks(s: Session): Callbacks {
  const open = new Map<string, ToolCall>();
  return {
    onToken: (token) => s.write(token),
    onToolStart: async (id, tool) => void open.set(id, await s.startCall({ tool, toolCallId: id })),
    onToolEnd: async (id, result) => open.get(id)?.succeed(result),
  };
}

/** A stand-in for a framework. */
async function framework({ onToken, onToolStart, onToolEnd }: Callbacks, pay: (bill: { amount: string; to: string }) => Promise<void>): Promise<void> {
  await onToolStart("1", "find_bill");
  await onToolEnd("1", "The bill is found.");
  await pay({ amount: "5.00", to: "Ben" });
  for (const token of ["Your ", "bill ", "is paid."]) await onToken(token);
}

await session("Paying bills", (s) =>
  framework(
    callbacks(s),
    s.tool({ name: "payBill", irreversible: true, action: "Pay {amount} euro to {to}." }, ({ amount, to }) => console.log(`PAID ${amount} to ${to}`)),
  ),
);
