import { Body, Controller, Post, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { CountsElements } from '#platform/http/throttle.js';
import { BatchDto, BatchResultsJson, MAX_BATCH_OPERATIONS } from './batch.dto.js';
import { BatchesService } from './batches.service.js';
import { CardActionQuery } from './customer-card.dto.js';

/** Serves clients that have collected operations while they were offline. */
@Controller('/api/v1/accounts/:account_id/batch')
export class BatchController {
  constructor(private readonly batches: BatchesService) {}

  @Post()
  @CountsElements('operations', MAX_BATCH_OPERATIONS)
  @Endpoint({
    id: 'executeBatch',
    tag: 'Customer cards',
    summary: 'Stamp and redeem many times at once',
    description:
      'For clients that were offline: up to 100 operations, each with its receipt number. Each is decided and committed by itself, as if it were a request of its own, and has its own result. Those on one card are executed in their order. Sent again after a lost response, the batch adds nothing twice. It counts towards the limits as one request for every ten operations.',
    path: ['account_id'],
    status: 200,
    response: BatchResultsJson,
    errors: [404, 422],
    codes: ['customer_erased'],
  })
  async execute(
    @Context() context: CommandContext,
    @Query() { dry_run: dryRun }: CardActionQuery,
    @Body() { operations }: BatchDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BatchResultsJson> {
    if (dryRun) reply.header('x-dry-run', 'true');
    return { results: await this.batches.execute({ ...context, dryRun }, operations) };
  }
}
