// The decorator pattern: each function says what it does and how dangerous it is. Run it with: npm run example decorator
import { ConsentRefusedError, session, tool } from "@sayso/client";

const findBill = tool({ name: "findBill", action: "Looking for your bill." }, () => ({ amount: "5.00", to: "Ben" }));

const payBill = tool(
  { name: "payBill", irreversible: true, action: "Pay {amount} euro to {to}.", consequence: "The money leaves your account at once." },
  ({ amount, to }: { amount: string; to: string }) => console.log(`PAID ${amount} to ${to}`),
);

try {
  await session("Paying bills", async (s) => {
    await payBill(await findBill({}));
    await s.say("Your bill is paid.");
  });
} catch (error) {
  if (!(error instanceof ConsentRefusedError)) throw error;
  console.log(`Nothing was paid: ${error.message}.`);
}
