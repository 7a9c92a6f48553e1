import { Controller, Get, Param } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { createRecordLookup } from '#platform/http/record.js';
import { EVENT_ID } from '#loyalty/stamping/path-parameters.js';
import { EventProofJson, toEventProofJson } from './proof.dto.js';
import { Proofs } from './proofs.service.js';

const TAG = 'Proofs';

const EVENT = createRecordLookup(Proofs, (proofs, accountId, { event_id = '' }) =>
  proofs.getEventProof(accountId, event_id),
);

@DeclaresTag({
  name: TAG,
  order: 76,
  description: 'Prove that the history is what was signed, without trusting the service.',
})
@Controller('/api/v1/accounts/:account_id/history')
export class ProofsController {
  constructor(private readonly proofs: Proofs) {}

  @Get(':event_id/proof')
  @Endpoint({
    id: 'getEventProof',
    tag: TAG,
    summary: 'Prove that an event is in the signed history',
    description:
      'An inclusion proof against a signed checkpoint. clients/verifier checks it offline; docs/history.md says what it shows.',
    path: ['account_id', EVENT_ID],
    status: 200,
    response: EventProofJson,
    errors: [404],
    record: EVENT,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('event_id') eventId: string,
  ): Promise<EventProofJson> {
    return toEventProofJson(await this.proofs.getEventProof(accountId, eventId));
  }
}
