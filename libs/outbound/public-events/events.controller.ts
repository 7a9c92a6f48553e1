import { Readable } from 'node:stream';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { CursorAheadError, InvalidFieldsError, RejectedError } from '#platform/kernel/errors.js';
import { Context, type AuthenticatedRequest } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { LargeResponses } from '#platform/http/large-responses.js';
import { addLink, renderNextLink } from '#platform/http/page.js';
import { EventFeed } from './event-feed.service.js';
import { EnvelopeJson, FeedQuery } from './event-feed.dto.js';
import { ISSUES } from '#translations/issues.js';

const DEFAULT_LIMIT = 100;
const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
/** A smaller response is sent in one piece, with its length. */
const MIN_STREAMED_BYTES = 512 * 1024;

@Controller('/api/v1/accounts/:account_id/events')
export class EventsController {
  constructor(
    private readonly feed: EventFeed,
    private readonly config: Config,
    private readonly largeResponses: LargeResponses,
  ) {}

  @Get()
  @Endpoint({
    id: 'listEvents',
    readsMuch: true,
    tag: 'Webhook deliveries',
    summary: 'Catch up on the events of a store',
    description:
      'Oldest first. The same envelopes as in webhooks, whether or not there is a subscription. To continue, pass the id of the last one as after.',
    path: ['account_id'],
    status: 200,
    response: [EnvelopeJson],
    errors: [404, 422],
    codes: ['cursor_ahead'],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() { after, type, external_ref: externalRef, limit }: FeedQuery,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Buffer | Readable> {
    const options = {
      after,
      types: type === null ? null : [type],
      externalRef,
      limit: limit ?? DEFAULT_LIMIT,
    };
    const page = await this.feed.catchUp(accountId, options, () =>
      this.largeResponses.acquire(request, reply),
    );
    if (!page) throw await this.createUnknownError(accountId, String(after));
    if (page.next !== null)
      addLink(reply, renderNextLink(this.config.publicUrl, request.url, { after: page.next }));
    // Sent as stored bytes, as fast as the client reads: parsing and serializing would need several times the memory.
    void reply.type('application/json; charset=utf-8');
    const bytes = page.envelopes.reduce((sum, { length }) => sum + length, 0);
    const parts = toJsonList(page.envelopes);
    if (bytes < MIN_STREAMED_BYTES) return Buffer.concat([...parts]);
    return Readable.from(parts, { objectMode: false, highWaterMark: 1 });
  }

  private async createUnknownError(accountId: number, after: string): Promise<RejectedError> {
    const resumption = await this.feed.findResumption(accountId, after);
    if (!resumption) return new InvalidFieldsError({ after: [ISSUES.unknown_event] });
    const resolution =
      resumption.after === null
        ? 'Start again from here: leave after out.'
        : `Start again from here: continue with after=${resumption.after}.`;
    return resumption.isLost
      ? new CursorAheadError({ after: [ISSUES.lost_event] }, resolution, resumption.after)
      : new RejectedError({ after: [ISSUES.never_event] }, 'validation_failed', resolution);
  }
}

/** Yields a JSON list of JSON texts. Each is released after it was read: a copy of the list would double the memory. */
function* toJsonList(texts: Buffer[]): Generator<Buffer> {
  yield OPEN;
  for (let text = texts.shift(); text; text = texts.shift()) {
    yield text;
    if (texts.length > 0) yield COMMA;
  }
  yield CLOSE;
}
