import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#kernel/config.js';
import { InvalidFieldsError } from '#kernel/errors.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { addLink, nextLink } from '#http/page.js';
import { EventFeed } from './event-feed.service.js';
import { EnvelopeJson, FeedQuery } from './event-feed.dto.js';

const SHOWN = 100;

@Controller('/api/v1/accounts/:account_id/events')
export class EventsController {
  constructor(
    private readonly feed: EventFeed,
    private readonly config: Config,
  ) {}

  @Get()
  @Endpoint({
    id: 'listEvents',
    tag: 'Webhook deliveries',
    summary: "Catch up on a store's events, oldest first",
    description:
      'The same envelopes as webhooks carry, whether or not there is a subscription. Go on with the id of the last one as after.',
    path: ['account_id'],
    status: 200,
    answer: [EnvelopeJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() { after, type, limit }: FeedQuery,
    @Req() { url }: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EnvelopeJson[]> {
    const page = await this.feed.catchUp(accountId, {
      after,
      types: type === null ? null : [type],
      limit: limit ?? SHOWN,
    });
    if (!page) throw new InvalidFieldsError({ after: ['is no event of this store that is kept'] });
    if (page.next !== null)
      addLink(reply, nextLink(this.config.publicUrl, url, { after: page.next }));
    return page.envelopes.map((text) => JSON.parse(text) as EnvelopeJson);
  }
}
