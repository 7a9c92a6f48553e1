import { NotFoundError } from '#platform/kernel/errors.js';
import { createCustomerMergedError } from '#loyalty/stamping/card-holder.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import type { CustomerMessaged } from './customer.events.js';

/** More than a customer gets while a message waits to be recorded. */
const MAX_REMEMBERED = 5;

type MessageState = { messageIds?: string[] };
type Recipient = MessageState & {
  id: number;
  erasedAt: string | null;
  mergedInto?: { customerId: number };
};

/** What was sent to a customer. */
export type SentMessage = Omit<CustomerMessaged['data'], 'customerId'>;

/** Records that the store wrote to a customer, once for each message. */
export function recordMessage(
  state: Recipient | undefined,
  message: SentMessage,
): CustomerMessaged[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) throw createCustomerErasedError();
  if (state.mergedInto) throw createCustomerMergedError(state.id, state.mergedInto.customerId);
  if (state.messageIds?.includes(message.messageId)) return [];
  return [{ type: 'CustomerMessaged', data: { customerId: state.id, ...message } }];
}

/** Adds a message to the last ones that the state remembers. */
export function rememberMessage<S extends MessageState>(state: S, messageId: string): S {
  return { ...state, messageIds: [...(state.messageIds ?? []), messageId].slice(-MAX_REMEMBERED) };
}
