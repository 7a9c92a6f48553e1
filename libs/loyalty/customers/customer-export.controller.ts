import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CustomerExportJson } from './customer-export.dto.js';
import { CustomerExport } from './customer-export.service.js';
import { CustomersService } from './customers.service.js';

const CUSTOMER = createRecordLookup(CustomersService, (customers, accountId, { id = '' }) =>
  customers.get(accountId, parsePathId(id)),
);

@Controller('/api/v1/accounts/:account_id/customers')
export class CustomerExportController {
  constructor(private readonly exports: CustomerExport) {}

  @Get(':id/export')
  @Endpoint({
    id: 'exportCustomer',
    readsMuch: true,
    tag: 'Customers',
    summary: 'Export all that is held on a person',
    description:
      'All that is held on one person, as one JSON document. Who the customer is, every event of them and of their cards with all that was recorded, and when each consent was given or withdrawn. Customers who are merged are one person: the export of one has all of them. Of an erased person, what is left.',
    path: ['account_id', 'id'],
    status: 200,
    response: CustomerExportJson,
    errors: [404],
    record: CUSTOMER,
  })
  async show(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Readable> {
    const id = parsePathId(path);
    const parts = await this.exports.createExport(context, id, getNow());
    void reply
      .type('application/json; charset=utf-8')
      .header('content-disposition', `attachment; filename="customer-${id}.json"`);
    return Readable.from(parts, { objectMode: false });
  }
}
