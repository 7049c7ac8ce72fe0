// The manual loop: every step is written out. Run it with: npm run example manual-loop
import { ConsentRefusedError, hub } from "@sayso/client";

const connection = hub({ producer: { agentName: "Bill payer" } });
const s = await connection.session("Pay my bill.", { summary: "Paying bills." });

await s.think("Looking for your bill.");
const bill = await s.run("find_bill", async () => ({ amount: "5.00", to: "Ben" }), { action: "Looking for your bill." });

const account = await s.clarify("From which account?", { choices: [{ value: "checking", label: "Checking" }, { value: "savings", label: "Savings" }], defaultResponse: "checking", answerTimeoutMs: 5000 });
const call = { ...bill, from: String(account) };

try {
  const granted = await s.ask({ tool: "pay_bill", arguments: call, irreversible: true, action: "Pay {amount} euro to {to} from {from}." });
  await s.call(granted, ({ amount, to }: typeof call) => console.log(`PAID ${amount} to ${to}`));
  await s.say("Your bill is paid.");
  await s.complete("The bill is paid.");
} catch (error) {
  if (!(error instanceof ConsentRefusedError)) throw error;
  await s.cancel(`Nothing was paid: ${error.message}.`);
} finally {
  await connection.close();
}
