// The middleware pattern: a session around each request of a pipeline. Run it with: npm run example middleware
import { currentSession, session, tool } from "@sayso/client";

type Handler = (request: { text: string }) => Promise<string>;

/** Opens a session for each request. It ends with the request: as completed, cancelled or errored. */
const heard =
  (next: Handler): Handler =>
  (request) =>
    session(request.text, async (s) => {
      const answer = await next(request);
      await s.say(answer);
      return answer;
    });

const payBill = tool({ name: "payBill", irreversible: true, action: "Pay {amount} euro to {to}." }, ({ amount, to }: { amount: string; to: string }) => {
  console.log(`PAID ${amount} to ${to}`);
});

const agent: Handler = async () => {
  await currentSession()?.think("Looking for your bill.");
  await payBill({ amount: "5.00", to: "Ben" });
  return "Your bill is paid.";
};

console.log(await heard(agent)({ text: "Pay my bill." }));
