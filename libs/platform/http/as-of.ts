import { TimeField } from './fields.js';
import { Dto } from './dtos.js';
import { PageQuery } from './page.js';

/** Declares the time in the past that a read is about; null: now. */
export const AsOfField = (): PropertyDecorator =>
  TimeField({
    optional: true,
    description:
      'The record as it was at that moment, by what had been recorded until then; 404 if it did not exist yet',
  });

@Dto('AsOfQuery')
export class AsOfQuery {
  @AsOfField() declare readonly as_of: Date | null;
}

@Dto('AsOfPageQuery')
export class AsOfPageQuery extends PageQuery {
  @AsOfField() declare readonly as_of: Date | null;
}
